package label

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

func someKey(v6 bool) model.FlowKey {
	src, dst := "10.0.0.2:1000", "10.3.1.3:4791"
	if v6 {
		src, dst = "[fd00::a]:1000", "[fd00::b]:4791"
	}
	return model.NewFlowKey(netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst), model.UDP)
}

func TestExportParse(t *testing.T) {
	one := Item{Switch: 7, Ingress: 1, Egress: 2, Time: 99, Latency: 5}
	two := Item{Switch: 8, Ingress: 3, Egress: 4, Time: 199, Latency: 6}
	for _, v6 := range []bool{false, true} {
		e := Export{Switch: 9, Time: -1, Key: someKey(v6)}
		b := e.AppendWithLabel(nil, one, Option{NextHeader: model.UDP, MaxHop: 5})
		var got Export
		n, err := got.Parse(b)
		if err != nil || n != len(b) || got.Key != e.Key || got.Time != -1 || got.Labels.Len() != 1 || got.Labels.Item(0) != one {
			t.Fatalf("Parse(%x) = %d, %v, %+v; want all of it and label %+v", b, n, err, got, one)
		}
		// The next label goes on top and keeps the packet's own option.
		b = got.AppendWithLabel(nil, two, Option{NextHeader: model.TCP, MaxHop: 9})
		n, err = got.Parse(b)
		if err != nil || n != len(b) || got.Labels.Len() != 2 || got.Labels.Item(0) != two || got.Labels.Item(1) != one || got.Labels.MaxHop != 5 {
			t.Fatalf("Parse(%x) = %d, %v, %+v; want labels %+v on top of %+v", b, n, err, got, two, one)
		}
	}
}

func TestExportParseRefuses(t *testing.T) {
	e := Export{Switch: 9, Key: someKey(false)}
	good := e.AppendWithLabel(nil, Item{Switch: 1}, Option{NextHeader: model.UDP, MaxHop: 5})
	for name, tc := range map[string]struct {
		change func(b []byte) []byte
		want   error
	}{
		"empty":          {func([]byte) []byte { return nil }, ErrShort},
		"version":        {func(b []byte) []byte { b[0] = 2; return b }, ErrExport},
		"reserved":       {func(b []byte) []byte { b[3] = 1; return b }, ErrExport},
		"key length":     {func(b []byte) []byte { b[1] = 14; return b }, ErrKey},
		"cut in the key": {func(b []byte) []byte { return b[:20] }, ErrShort},
		"cut in a label": {func(b []byte) []byte { return b[:len(b)-1] }, ErrShort},
		"no label":       {func(b []byte) []byte { b[exportHead+13+1] = 0; return b }, ErrBlock},
	} {
		var got Export
		if n, err := got.Parse(tc.change(slices.Clone(good))); !errors.Is(err, tc.want) || n != 0 {
			t.Errorf("%s: Parse = %d, %v; want 0, %v", name, n, err, tc.want)
		}
	}
}

func TestExportAllocatesNothing(t *testing.T) {
	e := Export{Key: someKey(true)}
	b := make([]byte, 0, 256)
	var got Export
	if n := testing.AllocsPerRun(100, func() {
		b = e.AppendWithLabel(b[:0], Item{}, Option{NextHeader: model.UDP, MaxHop: 5})
		_, _ = got.Parse(b)
		b = got.AppendTo(b[:0])
	}); n != 0 {
		t.Errorf("encoding and decoding an export allocates %v times; want 0", n)
	}
}

func FuzzExport(f *testing.F) {
	e := Export{Switch: 9, Time: 5, Key: someKey(false)}
	f.Add(e.AppendWithLabel(nil, Item{Switch: 1}, Option{NextHeader: model.UDP, MaxHop: 5}))
	e.Key = someKey(true)
	f.Add(e.AppendWithLabel(nil, Item{Switch: 1}, Option{NextHeader: model.UDP, MaxHop: 5}))
	f.Fuzz(func(t *testing.T, in []byte) {
		var e Export
		n, err := e.Parse(in)
		if err != nil {
			return
		}
		if out := e.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %x", in[:n], out)
		}
	})
}
