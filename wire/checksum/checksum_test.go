package checksum

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// slow is RFC 1071 word by word.
func slow(b []byte) uint16 {
	if len(b)%2 == 1 {
		b = append(append([]byte{}, b...), 0)
	}
	sum := uint32(0)
	for ; len(b) > 0; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
		if sum > 0xffff {
			sum -= 0xffff
		}
	}
	return ^uint16(sum)
}

func TestOfRFC1071Example(t *testing.T) {
	in := []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}
	if got, want := Of(in), ^uint16(0xddf2); got != want {
		t.Errorf("Of(%x) = %#04x; want %#04x", in, got, want)
	}
}

func TestSumEqualsSlowReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "in")
		cut := 2 * rapid.IntRange(0, len(in)/2).Draw(t, "cut")
		if got, want := Of(in), slow(in); got != want {
			t.Fatalf("Of(%x) = %#04x; want %#04x", in, got, want)
		}
		// Seven zero bytes of padding in the middle do not matter: pieces of
		// even length sum as the whole does.
		if got, want := Sum(0).Add(in[:cut]).Add(in[cut:]).Fold(), slow(in); got != want {
			t.Fatalf("Add(%x).Add(%x) = %#04x; want %#04x", in[:cut], in[cut:], got, want)
		}
	})
}

func TestUpdateEqualsRecomputing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msg := rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "message")
		msg[0] = 0x45 // as in every header we update, not all words are zero
		at := 2 * rapid.IntRange(1, 9).Draw(t, "word")
		after := rapid.Uint16().Draw(t, "after")
		check, before := Of(msg), binary.BigEndian.Uint16(msg[at:])
		binary.BigEndian.PutUint16(msg[at:], after)
		if got, want := Update(check, before, after), Of(msg); got != want {
			t.Fatalf("Update(%#04x, %#04x, %#04x) = %#04x; want %#04x", check, before, after, got, want)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	in := make([]byte, 1500)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		Of(in)
	}
}
