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

// FuzzParse has every input that is accepted encode to itself.
func FuzzParse(f *testing.F) {
	f.Add(PortKey{model.Port{Node: 1, Port: 2}}.AppendTo(nil))
	f.Add(PortState{Time: 5, Queue: 9, Bytes: 1 << 40, PausedClass: 8}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var again []byte
		var port PortKey
		var state PortState
		switch {
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
	}); n != 0 {
		t.Errorf("encoding allocates %v times; want 0", n)
	}
}
