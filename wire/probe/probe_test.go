package probe

import (
	"bytes"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

func TestOf(t *testing.T) {
	want := Stamp{Origin: 7, Series: 9, Number: 11}
	frame := func(proto model.Proto, transport []byte) []byte {
		b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
		b = packet.IPv4{Length: uint16(20 + len(transport) + Size), TTL: 9, Proto: proto, Src: 1 << 24, Dst: 2 << 24}.AppendTo(b)
		return want.AppendTo(append(b, transport...))
	}
	for name, in := range map[string][]byte{
		"udp":    frame(model.UDP, packet.UDP{SrcPort: 1, DstPort: 2, Length: 8 + Size}.AppendTo(nil)),
		"rocev2": frame(model.UDP, packet.UDP{SrcPort: 1, DstPort: 4791, Length: 8 + Size}.AppendTo(nil)),
		"tcp":    frame(model.TCP, packet.TCP{SrcPort: 1, DstPort: 2}.AppendTo(nil)),
		"other":  frame(253, nil),
	} {
		if got, err := FindStamp(in); err != nil || got != want {
			t.Errorf("%s: Of(%x) = %+v, %v; want %+v", name, in, got, err, want)
		}
		if got, err := FindStamp(in[:len(in)-1]); err == nil {
			t.Errorf("%s: Of(%x) = %+v; want an error, one byte is missing", name, in[:len(in)-1], got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Stamp{1, 2, 3}.AppendTo(nil))
	f.Add([]byte("WPRB"))
	f.Fuzz(func(t *testing.T, in []byte) {
		_, _ = FindStamp(in)
		var s Stamp
		n, err := s.Parse(in)
		if err != nil {
			if s != (Stamp{}) || n != 0 {
				t.Fatalf("Parse(%x) = %+v, %d, %v; want nothing beside the error", in, s, n, err)
			}
			return
		}
		if out := s.AppendTo(nil); !bytes.Equal(out, in[:n]) {
			t.Fatalf("round trip %x -> %x", in[:n], out)
		}
	})
}

func TestAllocs(t *testing.T) {
	b := Stamp{1, 2, 3}.AppendTo(nil)
	if n := testing.AllocsPerRun(100, func() {
		var s Stamp
		_, _ = s.Parse(b)
		b = s.AppendTo(b[:0])
	}); n != 0 {
		t.Errorf("Parse and AppendTo allocate %v times; want 0", n)
	}
}
