package keyed

import (
	"bytes"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

func flow(t testing.TB, s string) model.FlowKey {
	t.Helper()
	k, err := model.ParseFlowKey(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysAreReadBack(t *testing.T) {
	t.Run("port", func(t *testing.T) {
		want := PortKey{model.Port{Node: 70000, Port: 513}}
		b := want.AppendTo(nil)
		var got PortKey
		if err := got.Parse(b); err != nil || got != want || len(b) != PortKeySize {
			t.Errorf("Parse(%x) = %+v, %v; want %+v", b, got, err, want)
		}
	})
	for _, host := range []string{"10.0.0.2:1", "[fd00::2]:1"} {
		want := HostKey{Switch: 9, Metric: ReceivedPackets, Host: flow(t, "udp "+host+" > "+host).Src}
		b := want.AppendTo(nil)
		var got HostKey
		if err := got.Parse(b); err != nil || got != want {
			t.Errorf("Parse(%x) = %+v, %v; want %+v", b, got, err, want)
		}
	}
	want := ClassKey{Switch: 9, Metric: SentPackets, Class: 7}
	var got ClassKey
	if err := got.Parse(want.AppendTo(nil)); err != nil || got != want {
		t.Errorf("Parse = %+v, %v; want %+v", got, err, want)
	}
}

// FuzzParse has every input that is accepted encode to itself.
func FuzzParse(f *testing.F) {
	f.Add(PortKey{model.Port{Node: 1, Port: 2}}.AppendTo(nil))
	f.Add(HostKey{Switch: 1, Host: model.Addr4(5)}.AppendTo(nil))
	f.Add(HostKey{Switch: 1, Host: model.Addr{Hi: 5}}.AppendTo(nil))
	f.Add(ClassKey{Switch: 1, Class: 3}.AppendTo(nil))
	f.Add(PortState{Time: 5, Queue: 9, Bytes: 1 << 40, PausedClass: 8}.AppendTo(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		var again []byte
		var port PortKey
		var host HostKey
		var class ClassKey
		var state PortState
		switch {
		case port.Parse(in) == nil:
			again = port.AppendTo(nil)
		case host.Parse(in) == nil:
			again = host.AppendTo(nil)
		case class.Parse(in) == nil:
			again = class.AppendTo(nil)
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
	key := HostKey{Host: model.Addr{Hi: 1}}
	if n := testing.AllocsPerRun(100, func() {
		buf = PortState{Time: 1}.AppendTo(PortKey{}.AppendTo(buf[:0]))
		buf = key.AppendTo(buf[:0])
		var again HostKey
		_ = again.Parse(buf)
	}); n != 0 {
		t.Errorf("encoding allocates %v times; want 0", n)
	}
}
