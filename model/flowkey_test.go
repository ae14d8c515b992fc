package model

import (
	"bytes"
	"math"
	"math/bits"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func key(src, dst string, proto Proto) FlowKey {
	return NewFlowKey(netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst), proto)
}

func anyKey(t *rapid.T) FlowKey {
	b := rapid.SliceOfN(rapid.Byte(), KeyLen6, KeyLen6).Draw(t, "canonical")
	if rapid.Bool().Draw(t, "v4") {
		b = b[:KeyLen4]
	}
	var k FlowKey
	if err := k.Parse(b); err != nil {
		t.Fatalf("Parse(%x) = %v; want nil", b, err)
	}
	return k
}

func TestFlowKeyCanonicalBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		key  FlowKey
		want []byte
		text string
	}{
		"IPv4": {
			key("10.0.0.2:40000", "10.0.1.2:80", TCP),
			[]byte{10, 0, 0, 2, 10, 0, 1, 2, 0x9c, 0x40, 0, 80, 6},
			"tcp 10.0.0.2:40000 > 10.0.1.2:80",
		},
		"IPv6": {
			key("[fd00::2]:49152", "[fd00::3]:4791", UDP),
			append(append(append([]byte{0xfd, 15: 2}, 0xfd), append(make([]byte, 14), 3)...), 0xc0, 0, 0x12, 0xb7, 17),
			"udp [fd00::2]:49152 > [fd00::3]:4791",
		},
		"mapped addresses in an IPv6 packet": {
			key("[::ffff:10.0.0.2]:1", "[::ffff:10.0.1.2]:2", UDP),
			[]byte{10: 0xff, 0xff, 10, 0, 0, 2, 26: 0xff, 0xff, 10, 0, 1, 2, 0, 1, 0, 2, 17},
			"udp [::ffff:10.0.0.2]:1 > [::ffff:10.0.1.2]:2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.key.AppendTo(nil)
			if !bytes.Equal(got, tc.want) {
				t.Errorf("AppendTo(%v) = %x; want %x", tc.key, got, tc.want)
			}
			if s := tc.key.String(); s != tc.text {
				t.Errorf("String() = %q; want %q", s, tc.text)
			}
			if tc.key.Len() != len(tc.want) {
				t.Errorf("Len() = %d; want %d", tc.key.Len(), len(tc.want))
			}
		})
	}
}

func TestFlowKeyRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyKey(t)
		var again FlowKey
		if err := again.Parse(k.AppendTo(nil)); err != nil || again != k {
			t.Fatalf("Parse(AppendTo(%v)) = %v, %v", k, again, err)
		}
		if again, err := ParseFlowKey(k.String()); err != nil || again != k {
			t.Fatalf("ParseFlowKey(%q) = %v, %v", k, again, err)
		}
		if k.Reverse().Reverse() != k {
			t.Fatalf("Reverse twice of %v = %v", k, k.Reverse().Reverse())
		}
	})
}

func TestParseFlowKeyRefuses(t *testing.T) {
	for _, in := range []string{"", "tcp", "tcp 10.0.0.1:1 < 10.0.0.2:2", "tcp 10.0.0.1:1 > [fd00::1]:2", "bogus 10.0.0.1:1 > 10.0.0.2:2", "tcp 10.0.0.1 > 10.0.0.2:2", "256 10.0.0.1:1 > 10.0.0.2:2"} {
		if k, err := ParseFlowKey(in); err == nil {
			t.Errorf("ParseFlowKey(%q) = %v, nil; want an error", in, k)
		}
	}
	if k, err := ParseFlowKey(FlowKey{}.String()); err != nil || !k.IsZero() {
		t.Errorf("ParseFlowKey of the zero key = %v, %v; want the zero key", k, err)
	}
}

func FuzzFlowKeyParse(f *testing.F) {
	f.Add(key("10.0.0.2:40000", "10.0.1.2:80", TCP).AppendTo(nil))
	f.Add(key("[fd00::2]:49152", "[fd00::3]:4791", UDP).AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var k FlowKey
		if k.Parse(in) != nil {
			return
		}
		if out := k.AppendTo(nil); !bytes.Equal(out, in) {
			t.Fatalf("round trip %x -> %x", in, out)
		}
	})
}

func FuzzParseFlowKey(f *testing.F) {
	f.Add("tcp 10.0.0.2:40000 > 10.0.1.2:80")
	f.Add("udp [fd00::2]:49152 > [::ffff:1.2.3.4]:4791")
	f.Fuzz(func(t *testing.T, in string) {
		k, err := ParseFlowKey(in)
		if err != nil {
			return
		}
		if again, err := ParseFlowKey(k.String()); err != nil || again != k {
			t.Fatalf("ParseFlowKey(%q) = %v; its text reads as %v, %v", in, k, again, err)
		}
	})
}

// TestHashAvalanche flips every input bit of many keys: each output bit must
// change about half the time, or switches that use a few bits of the hash
// would spread flows unevenly.
func TestHashAvalanche(t *testing.T) {
	for name, n := range map[string]int{"IPv4": KeyLen4, "IPv6": KeyLen6} {
		const keys = 400
		flips := make([]int, 64)
		total := 0
		b := make([]byte, n)
		state := uint64(1)
		for range keys {
			for i := range b {
				state = state*6364136223846793005 + 1442695040888963407
				b[i] = byte(state >> 56)
			}
			var k FlowKey
			k.Parse(b)
			h := k.Hash(7)
			for bit := range n * 8 {
				b[bit/8] ^= 1 << (bit % 8)
				k.Parse(b)
				b[bit/8] ^= 1 << (bit % 8)
				for d := h ^ k.Hash(7); d != 0; d &= d - 1 {
					flips[bits.TrailingZeros64(d)]++
				}
				total++
			}
		}
		for bit, f := range flips {
			if p := float64(f) / float64(total); math.Abs(p-0.5) > 0.02 {
				t.Errorf("%s: output bit %d flips with probability %.3f; want 0.5 ± 0.02", name, bit, p)
			}
		}
	}
}

// TestHashSeedsAreIndependent compares the choices that two seeds make among
// eight next hops for flows that differ only in their port, the usual case in a
// fabric, by the low and by the high bits of the hash. Each of the 64 pairs of
// choices should hold a 64th of the flows; chi-square with 63 degrees of
// freedom exceeds 124 once in 100,000 cases.
func TestHashSeedsAreIndependent(t *testing.T) {
	const flows, limit = 64000, 124
	bad := 0
	for pair := range uint64(200) {
		a, b := pair*0x9e3779b97f4a7c15+1, pair*0xbf58476d1ce4e5b9+2
		var low, high [64]float64
		k := key("10.0.0.2:1", "10.0.1.2:4791", UDP)
		for i := range flows {
			k.SrcPort = uint16(i)
			x, y := k.Hash(a), k.Hash(b)
			low[x&7<<3|y&7]++
			high[x>>61<<3|y>>61]++
		}
		for _, counts := range [][64]float64{low, high} {
			chi, want := 0.0, float64(flows)/64
			for _, n := range counts {
				chi += (n - want) * (n - want) / want
			}
			if chi > limit {
				bad++
			}
		}
	}
	if bad > 1 {
		t.Errorf("%d of 400 comparisons of two seeds exceed chi-square %d; want at most 1", bad, limit)
	}
}

func TestFlowKeyAllocatesNothing(t *testing.T) {
	k := key("[fd00::2]:49152", "[fd00::3]:4791", UDP)
	buf := make([]byte, 0, MaxKeyLen)
	m := map[FlowKey]int{k: 1}
	var sink uint64
	if n := testing.AllocsPerRun(100, func() {
		buf = k.AppendTo(buf[:0])
		var again FlowKey
		_ = again.Parse(buf)
		sink += again.Hash(3)
		m[again]++
	}); n != 0 {
		t.Errorf("AppendTo, Parse, Hash and a map look-up allocate %v times; want 0", n)
	}
}

func BenchmarkHash(b *testing.B) {
	for name, k := range map[string]FlowKey{
		"IPv4": key("10.0.0.2:40000", "10.0.1.2:80", TCP),
		"IPv6": key("[fd00::2]:49152", "[fd00::3]:4791", UDP),
	} {
		b.Run(name, func(b *testing.B) {
			var sink uint64
			for b.Loop() {
				sink += k.Hash(sink)
			}
		})
	}
}

func TestFlowKeyCompareOrdersAsCanonicalBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyKey(t), anyKey(t)
		want := bytes.Compare(a.AppendTo(nil), b.AppendTo(nil))
		if a.V6 != b.V6 {
			want = a.Len() - b.Len()
		}
		if got := a.Compare(b); (got < 0) != (want < 0) || (got > 0) != (want > 0) {
			t.Fatalf("%v.Compare(%v) = %d; want the sign of %d", a, b, got, want)
		}
		if got := a.Compare(a); got != 0 {
			t.Fatalf("%v.Compare(itself) = %d; want 0", a, got)
		}
	})
}

// TestEqualIsEqual changes every field in turn.
func TestEqualIsEqual(t *testing.T) {
	k := FlowKey{Src: Addr{1, 2}, Dst: Addr{3, 4}, SrcPort: 5, DstPort: 6, Proto: 7}
	for i, change := range []func(*FlowKey){
		func(*FlowKey) {},
		func(o *FlowKey) { o.Src.Hi++ }, func(o *FlowKey) { o.Src.Lo++ },
		func(o *FlowKey) { o.Dst.Hi++ }, func(o *FlowKey) { o.Dst.Lo++ },
		func(o *FlowKey) { o.SrcPort++ }, func(o *FlowKey) { o.DstPort++ },
		func(o *FlowKey) { o.Proto++ }, func(o *FlowKey) { o.V6 = true },
	} {
		o := k
		change(&o)
		if got, want := k.Equal(&o), k == o; got != want || want != (i == 0) {
			t.Errorf("change %d: Equal(%+v, %+v) = %v; want %v", i, k, o, got, want)
		}
	}
}
