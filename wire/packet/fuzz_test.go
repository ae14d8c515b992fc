package packet

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/roce"
)

// FuzzParse holds what is true of every frame. There is no encoder from a
// Packet to its frame, so instead of a round trip: nothing of an earlier frame
// survives, the quick path agrees with the general one, offsets lie in order
// inside the frame, and what a key says is in the frame where the offsets
// point.
func FuzzParse(f *testing.F) {
	inner := ip4(nil, model.TCP, "10.0.0.9", "10.0.9.9", tcp(40000, 80, SYN))
	f.Add(tcpFrame())
	f.Add(ip4(ether(TypeIPv4), model.UDP, "10.0.0.1", "10.0.0.5", udp(1, roce.Port, make([]byte, 30))))
	f.Add(ip4(ether(TypeIPv4), model.GRE, "10.0.0.1", "10.0.0.5", join(unhex("2000 0800 00000007"), inner)))
	f.Add(ip4(ether(TypeIPv4), model.UDP, "10.0.0.1", "10.0.0.5", udp(5, VXLANPort, join(unhex("08000000 00000700"), ether(TypeVLAN), unhex("00010800"), inner))))
	f.Add(ip4(ether(TypeIPv4), 253, "10.0.0.1", "10.0.0.5", join([]byte{6, 1, 5, 1}, make([]byte, 32), tcp(1, 2, 0))))
	f.Add(ip6(ether(TypeIPv6), 44, "fd00::2", "fd00::3", join(unhex("1100 0008 00000063"), make([]byte, 8))))
	f.Add(join(ether(TypeQinQ), unhex("a00a 8100 0014 86dd"), ip6(nil, 51, "fd00::2", "fd00::3", join([]byte{6, 4}, make([]byte, 22), tcp(1, 2, 0)))))
	f.Fuzz(func(t *testing.T, in []byte) {
		got := dirty()
		err := got.Parse(in)
		var general Packet
		if generalErr := general.parseAny(in); got != general || err != generalErr {
			t.Fatalf("Parse(%x) = %s, %v; parseAny = %s, %v", in, brief(&got), err, brief(&general), generalErr)
		}
		if err != nil || got.Depth == 0 {
			if !got.Outer.Key.IsZero() || got.Depth != 0 {
				t.Fatalf("Parse(%x) = %v with key %v, depth %d; want neither", in, err, got.Outer.Key, got.Depth)
			}
			return
		}
		checkIP(t, in, &got.Outer)
		if got.Depth > 1 {
			checkIP(t, in, &got.Inner)
			if got.Inner.Start < got.Outer.Transport {
				t.Fatalf("Parse(%x): the inner header at %d lies before the outer transport at %d", in, got.Inner.Start, got.Outer.Transport)
			}
		}
	})
}

func checkIP(t *testing.T, in []byte, h *IP) {
	if h.Start >= h.Transport || h.Transport > h.Payload || int(h.Payload) > len(in) {
		t.Fatalf("Parse(%x): offsets %d, %d, %d out of order in %d bytes", in, h.Start, h.Transport, h.Payload, len(in))
	}
	addrs := in[h.Start+12 : h.Start+20]
	if h.Key.V6 {
		addrs = in[h.Start+8 : h.Start+40]
	}
	b := h.Key.AppendTo(nil)
	if string(b[:len(addrs)]) != string(addrs) {
		t.Fatalf("Parse(%x): key %v does not hold the addresses %x", in, h.Key, addrs)
	}
	if (h.Key.Proto == model.TCP || h.Key.Proto == model.UDP) && !h.Flags.Has(NoPorts) {
		if ports := in[h.Transport : h.Transport+4]; string(b[len(addrs):len(addrs)+4]) != string(ports) {
			t.Fatalf("Parse(%x): key %v does not hold the ports %x", in, h.Key, ports)
		}
	} else if h.Key.SrcPort != 0 || h.Key.DstPort != 0 {
		t.Fatalf("Parse(%x): key %v has ports that could not be read", in, h.Key)
	}
}
