package keyed

import (
	"bytes"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

func TestKeysAreReadBack(t *testing.T) {
	want := PortKey{model.Port{Node: 70000, Port: 513}}
	b := want.AppendTo(nil)
	var got PortKey
	if err := got.Parse(b); err != nil || got != want || len(b) != PortKeySize {
		t.Errorf("Parse(%x) = %+v, %v; want %+v", b, got, err, want)
	}
}

func TestHostKeysAreReadBack(t *testing.T) {
	for _, want := range []HostKey{
		{Switch: 70000, Host: model.Addr4(0x0a000001), Class: 7, Metric: ReceivedMarked},
		{Switch: 3, Host: model.Addr{Hi: 0xfd00 << 48, Lo: 9}, Class: 3, Metric: SentPackets},
	} {
		b := want.AppendTo(nil)
		var got HostKey
		if err := got.Parse(b); err != nil || got != want {
			t.Errorf("Parse(%x) = %+v, %v; want %+v", b, got, err, want)
		}
	}
}

func TestHostKeysThatAreRefused(t *testing.T) {
	key := HostKey{Switch: 1, Host: model.Addr4(0x0a000001)}.AppendTo(nil)
	changed := func(at int, v byte) []byte {
		b := bytes.Clone(key)
		b[at] = v
		return b
	}
	mapped := HostKey{Switch: 1, Host: model.Addr{Hi: 1}}.AppendTo(nil)
	mapped[15], mapped[18], mapped[19] = 0, 0xff, 0xff // an IPv4 address in 16 bytes
	for name, tc := range map[string]struct {
		in   []byte
		want error
	}{
		"short":        {key[:11], ErrShort},
		"another kind": {changed(0, byte(PortStateKind)), ErrKind},
		"metric":       {changed(1, byte(Metrics)), ErrMetric},
		"class":        {changed(2, Classes), ErrZero},
		"reserved":     {changed(3, 1), ErrZero},
		"mapped":       {mapped, ErrShort},
	} {
		var got HostKey
		if err := got.Parse(tc.in); err != tc.want || got != (HostKey{}) {
			t.Errorf("%s: Parse(%x) = %+v, %v; want %v", name, tc.in, got, err, tc.want)
		}
	}
}

// FuzzParse has every input that is accepted encode to itself.
func FuzzParse(f *testing.F) {
	f.Add(PortKey{model.Port{Node: 1, Port: 2}}.AppendTo(nil))
	f.Add(PortState{Time: 5, Queue: 9, Bytes: 1 << 40, PausedClass: 8}.AppendTo(nil))
	f.Add(HostKey{Switch: 1, Host: model.Addr4(0x0a000001), Metric: SentPackets}.AppendTo(nil))
	f.Add(HostKey{Switch: 1, Host: model.Addr{Hi: 0xfd00 << 48, Lo: 9}, Class: 3}.AppendTo(nil))
	for _, flow := range []string{"tcp 10.0.0.2:40000 > 10.0.1.2:80", "udp [fd00::2]:40000 > [fd00::3]:4791"} {
		k, err := model.ParseFlowKey(flow)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(NewPostcardKey(&k, 3).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var again []byte
		var port PortKey
		var host HostKey
		var card PostcardKey
		var state PortState
		switch {
		case card.Parse(in) == nil:
			again = card.AppendTo(nil)
		case host.Parse(in) == nil:
			again = host.AppendTo(nil)
		case port.Parse(in) == nil:
			again = port.AppendTo(nil)
		case state.Parse(in) == nil:
			again = state.AppendTo(nil)
		default:
			return
		}
		if !bytes.Equal(again, in) {
			t.Fatalf("round trip %x -> %x", in, again)
		}
	})
}

func TestPortStateIsCappedNotWrapped(t *testing.T) {
	var got PortState
	if err := got.Parse(PortState{Queue: 1 << 40}.AppendTo(nil)); err != nil || got.Queue != 1<<32-1 {
		t.Errorf("a queue of 1 TiB is read as %v, %v; want the cap", got.Queue, err)
	}
}

func TestAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() {
		buf = PortState{Time: 1}.AppendTo(PortKey{}.AppendTo(buf[:0]))
		var again PortState
		_ = again.Parse(buf[PortKeySize:])
		var host HostKey
		_ = host.Parse(HostKey{Host: model.Addr4(1)}.AppendTo(buf[:0]))
	}); n != 0 {
		t.Errorf("encoding allocates %v times; want 0", n)
	}
}
