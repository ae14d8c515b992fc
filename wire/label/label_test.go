package label

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// wireItem and item are the same label, the one written by hand.
var (
	wireItem = []byte{
		0x00, 0x00, 0x00, 0x0c, // switch 12
		0x00, 0x03, 0x00, 0x07, // in at port 3, out at port 7
		0x00, 0x00, 0x00, 0x00, 0x3b, 0x9a, 0xca, 0x00, // one second
		0x00, 0x00, 0x30, 0x39, // 12345 ns
		0x00, 0x01, 0x00, 0x00, // 65536 bytes
		0x00, 0x00, 0x05, 0xdc, // 1500 bytes
		0x03, 0x80, // queue 3, an unknown flag
		0x7f, 0xff, // half the link
	}
	item = Item{
		Switch: 12, Ingress: 3, Egress: 7, Time: model.Time(time.Second), Latency: 12345 * time.Nanosecond,
		EnqueueDepth: 64 * model.KiB, DequeueDepth: 1500, Queue: 3, Flags: 0x80, Utilisation: 0x7fff,
	}
)

func TestOptionParse(t *testing.T) {
	for name, tc := range map[string]struct {
		in       []byte
		want     Option
		count    int
		specific bool
		err      error
	}{
		"one label":             {in: []byte{6, 1, 5, 1}, want: Option{model.TCP, 1, 5}, count: 1},
		"full":                  {in: []byte{17, 5, 5, 1}, want: Option{model.UDP, 5, 5}, count: 5},
		"specific, one label":   {in: []byte{17, 6, 5, 1}, want: Option{model.UDP, 6, 5}, count: 1, specific: true},
		"specific, full":        {in: []byte{17, 10, 5, 1}, want: Option{model.UDP, 10, 5}, count: 5, specific: true},
		"largest":               {in: []byte{58, 64, 32, 1, 9}, want: Option{model.ICMPv6, 64, 32}, count: 32, specific: true},
		"truncated":             {in: []byte{6, 1, 5}, err: ErrShort},
		"no label":              {in: []byte{6, 0, 5, 1}, err: ErrBlock},
		"more than a full path": {in: []byte{6, 11, 5, 1}, err: ErrBlock},
		"no hops":               {in: []byte{6, 0, 0, 1}, err: ErrBlock},
		"too many hops":         {in: []byte{6, 1, 33, 1}, err: ErrBlock},
		"255 of 128":            {in: []byte{6, 255, 128, 1}, err: ErrBlock},
		"labels in labels":      {in: []byte{253, 1, 5, 1}, err: ErrBlock},
		"another version":       {in: []byte{6, 1, 5, 2}, err: ErrBlock},
	} {
		t.Run(name, func(t *testing.T) {
			got := Option{MaxHop: 99}
			n, err := got.Parse(tc.in)
			if err != tc.err || got != tc.want || (err == nil) != (n == OptionSize) {
				t.Fatalf("Parse(%x) = %+v, %d, %v; want %+v, %v", tc.in, got, n, err, tc.want, tc.err)
			}
			if err == nil && (got.Count() != tc.count || got.Specific() != tc.specific) {
				t.Errorf("%+v has %d labels, specific %v; want %d, %v", got, got.Count(), got.Specific(), tc.count, tc.specific)
			}
		})
	}
}

func TestItemParse(t *testing.T) {
	var got Item
	if n, err := got.Parse(wireItem); n != ItemSize || err != nil || got != item {
		t.Errorf("Parse(%x) = %+v, %d, %v; want %+v, %d, nil", wireItem, got, n, err, item, ItemSize)
	}
	if n, err := got.Parse(wireItem[:31]); n != 0 || err != ErrShort || got != (Item{}) {
		t.Errorf("Parse of 31 bytes = %+v, %d, %v; want nothing, 0, ErrShort", got, n, err)
	}
	if b := item.AppendTo(nil); !bytes.Equal(b, wireItem) {
		t.Errorf("AppendTo of %+v = %x; want %x", item, b, wireItem)
	}
}

func TestItemSaturates(t *testing.T) {
	for _, tc := range []struct {
		latency     time.Duration
		depth       model.Bytes
		wantLatency time.Duration
		wantDepth   model.Bytes
	}{
		{5 * time.Second, 5 * model.GiB, math.MaxUint32, math.MaxUint32},
		{-1, -1, 0, 0},
		{math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32},
	} {
		in := Item{Latency: tc.latency, EnqueueDepth: tc.depth, DequeueDepth: tc.depth}
		want := Item{Latency: tc.wantLatency, EnqueueDepth: tc.wantDepth, DequeueDepth: tc.wantDepth}
		var got Item
		if _, err := got.Parse(in.AppendTo(nil)); err != nil || got != want {
			t.Errorf("%+v over the wire is %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestBlockParse(t *testing.T) {
	older := item
	older.Switch = 4
	in := append([]byte{17, 7, 5, 1}, wireItem...) // specific, two labels
	in = older.AppendTo(in)
	in = append(in, 0xaa) // payload
	var k Block
	n, err := k.Parse(in)
	if n != 68 || err != nil || k.Len() != 2 || k.Item(0) != item || k.Item(1) != older {
		t.Fatalf("Parse(%x) = %+v, %d, %v; want %+v over %+v in 68 bytes", in, k, n, err, item, older)
	}
	if b := k.AppendTo(nil); !bytes.Equal(b, in[:68]) {
		t.Errorf("AppendTo = %x; want %x", b, in[:68])
	}
	if n, err := k.Parse(in[:67]); n != 0 || err != ErrShort || k.Len() != 0 {
		t.Errorf("Parse of a cut block = %+v, %d, %v; want nothing, 0, ErrShort", k, n, err)
	}
	if b := (Block{}).AppendTo(nil); len(b) != 0 {
		t.Errorf("AppendTo of the zero Block = %x; want nothing", b)
	}
}

func FuzzOption(f *testing.F) {
	f.Add([]byte{6, 1, 5, 1})
	f.Add([]byte{17, 10, 5, 1, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		var o Option
		n, err := o.Parse(in)
		if err != nil {
			return
		}
		if out := o.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], o, out)
		}
		if c := o.Count(); c < 1 || c > int(o.MaxHop) {
			t.Fatalf("Parse(%x) accepts %d labels of at most %d", in, c, o.MaxHop)
		}
	})
}

func FuzzItem(f *testing.F) {
	f.Add(wireItem)
	f.Fuzz(func(t *testing.T, in []byte) {
		var it Item
		n, err := it.Parse(in)
		if err != nil {
			return
		}
		if out := it.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %+v -> %x", in[:n], it, out)
		}
	})
}

func FuzzBlock(f *testing.F) {
	f.Add(append([]byte{17, 6, 5, 1}, wireItem...))
	f.Add(append(append([]byte{17, 2, 5, 1}, wireItem...), wireItem...))
	f.Fuzz(func(t *testing.T, in []byte) {
		var k Block
		n, err := k.Parse(in)
		if err != nil {
			return
		}
		if out := k.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %x", in[:n], out)
		}
		if k.Len() != k.Count() {
			t.Fatalf("Parse(%x) holds %d labels and states %d", in, k.Len(), k.Count())
		}
		for i := range k.Len() {
			k.Item(i)
		}
	})
}

func TestCodecAllocs(t *testing.T) {
	block := append([]byte{17, 6, 5, 1}, wireItem...)
	buf := make([]byte, 0, 100)
	var (
		o  Option
		it Item
		k  Block
	)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = o.Parse(block)
		_, _ = it.Parse(wireItem)
		_, _ = k.Parse(block)
		it = k.Item(0)
		buf = k.AppendTo(buf[:0])
		buf = it.AppendTo(o.AppendTo(buf[:0]))
	}); n != 0 {
		t.Errorf("encoding and decoding allocate %v times; want 0", n)
	}
}

func BenchmarkItemParse(b *testing.B) {
	var it Item
	for b.Loop() {
		_, _ = it.Parse(wireItem)
	}
}
