package sketch

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

func anyKey(t *rapid.T, n int) model.FlowKey {
	var k model.FlowKey
	if err := k.Parse(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "canonical")); err != nil {
		t.Fatal(err)
	}
	return k
}

// TestWordsAreTheCanonicalKey holds the words of both families against the
// bytes that model and the wire format agree on.
func TestWordsAreTheCanonicalKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyKey(t, model.KeyLen4)
		w := Pack4(&k)
		var b [model.MaxKeyLen]byte
		PutKey(&b, &w)
		if want := k.AppendTo(nil); !bytes.Equal(b[:model.KeyLen4], want) || w.FlowKey() != k || FlowKeyOf(&w) != k || ReadKey[Key4](&b) != w {
			t.Fatalf("words %x of %v put %x, read %x and name %v; want %x", w, k, b, ReadKey[Key4](&b), w.FlowKey(), want)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		k := anyKey(t, model.KeyLen6)
		w := Pack6(&k)
		var b [model.MaxKeyLen]byte
		PutKey(&b, &w)
		if want := k.AppendTo(nil); !bytes.Equal(b[:], want) || w.FlowKey() != k || FlowKeyOf(&w) != k || ReadKey[Key6](&b) != w {
			t.Fatalf("words %x of %v put %x, read %x and name %v; want %x", w, k, b, ReadKey[Key6](&b), w.FlowKey(), want)
		}
	})
}
