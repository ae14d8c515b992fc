package dissect

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/gre"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/probe"
	"github.com/weft-telemetry/weft/wire/roce"
)

var update = flag.Bool("update", false, "write the transcript")

func ether(typ uint16, payload []byte) []byte {
	return append(packet.Ethernet{Dst: model.MAC{2, 0, 0, 0, 0, 2}, Src: model.MAC{2, 0, 0, 0, 0, 1}, Type: typ}.AppendTo(nil), payload...)
}

func ip4(proto model.Proto, payload []byte) []byte {
	h := packet.IPv4{TOS: 0x1b, ID: 77, Flags: packet.DontFragment, TTL: 63, Proto: proto, Length: uint16(packet.IPv4Size + len(payload)), Src: 0x0a000002, Dst: 0x0a010002}
	h.Checksum = h.Sum()
	return append(h.AppendTo(nil), payload...)
}

func ip6(next model.Proto, payload []byte) []byte {
	return append(packet.IPv6{
		TrafficClass: 0x2a, FlowLabel: 5, NextHeader: next, HopLimit: 9, Length: uint16(len(payload)),
		Src: model.Addr{Hi: 0xfd00 << 48, Lo: 2}, Dst: model.Addr{Hi: 0xfd00 << 48, Lo: 3},
	}.AppendTo(nil), payload...)
}

func udpTo(port uint16, payload []byte) []byte {
	return append(packet.UDP{SrcPort: 49152, DstPort: port, Length: uint16(packet.UDPSize + len(payload))}.AppendTo(nil), payload...)
}

// frames are one of each kind that a fabric carries.
func frames(t testing.TB) map[string][]byte {
	write := append(roce.BTH{Opcode: roce.WriteOnly, PKey: roce.DefaultPKey, DestQP: 7, AckReq: true, PSN: 1000}.AppendTo(nil), roce.RETH{VA: 0x7f00, RKey: 9, Length: 4096}.AppendTo(nil)...)
	ack := append(roce.BTH{Opcode: roce.Acknowledge, DestQP: 8, PSN: 1000}.AppendTo(nil), roce.AETH{Syndrome: roce.NakSequence, MSN: 3}.AppendTo(nil)...)
	stamped := probe.Stamp{Origin: 4, Series: 2, Number: 1}.AppendTo(nil)
	tcp := packet.TCP{SrcPort: 40000, DstPort: 80, Seq: 9, Ack: 8, Flags: uint16(packet.SYN | packet.ACK), Window: 512}.AppendTo(nil)
	plain := ip4(model.TCP, tcp)
	labelled, err := label.Push(append(make([]byte, 0, 200), plain...), &label.Item{Switch: 12, Ingress: 1, Egress: 3, Latency: 1250, EnqueueDepth: 3000, Utilisation: 0x8000}, label.Params{})
	if err != nil {
		t.Fatal(err)
	}
	wrong := ip4(model.ICMP, packet.ICMP{Type: 8}.AppendTo(nil))
	wrong[10] ^= 0xff
	return map[string][]byte{
		"RDMA write":          ether(packet.TypeIPv4, ip4(model.UDP, udpTo(roce.Port, append(write, make([]byte, 20)...)))),
		"RDMA refusal":        ether(packet.TypeIPv6, ip6(model.UDP, udpTo(roce.Port, ack))),
		"TCP with a tag":      ether(packet.TypeVLAN, append(packet.VLAN{PCP: 3, ID: 100, Type: packet.TypeIPv4}.AppendTo(nil), plain...)),
		"labelled":            ether(packet.TypeIPv4, labelled),
		"probe in tunnels":    ether(packet.TypeIPv4, ip4(model.IPIP, ip4(model.IPIP, ip4(model.UDP, udpTo(roce.Port, stamped))))),
		"VXLAN":               ether(packet.TypeIPv4, ip4(model.UDP, udpTo(packet.VXLANPort, append(packet.VXLAN{Flags: 8, VNI: 42}.AppendTo(nil), ether(packet.TypeIPv4, plain)...)))),
		"GRE":                 ether(packet.TypeIPv4, ip4(model.GRE, append(gre.Header{Protocol: packet.TypeIPv6, HasKey: true, Key: 6, HasSeq: true, Seq: 5}.AppendTo(nil), ip6(model.TCP, tcp)...))),
		"fragment of IPv6":    ether(packet.TypeIPv6, ip6(0, append([]byte{44, 0, 0, 0, 0, 0, 0, 0}, append([]byte{17, 0, 5, 161, 0, 0, 0, 9}, make([]byte, 8)...)...))),
		"checksum is wrong":   ether(packet.TypeIPv4, wrong),
		"cut inside of TCP":   ether(packet.TypeIPv4, plain)[:44],
		"not an IPv4 version": ether(packet.TypeIPv4, append([]byte{0x65}, plain[1:]...)),
		"padded":              append(ether(packet.TypeIPv4, ip4(model.UDP, udpTo(9, nil))), make([]byte, 18)...),
		"unknown type":        ether(0x1234, []byte{1, 2, 3}),
		"nothing":             {},
	}
}

func print(layers []Layer) string {
	var b strings.Builder
	for _, l := range layers {
		fmt.Fprintf(&b, "  %d+%d %s", l.Offset, l.Size, l.Name)
		if l.Problem != "" {
			fmt.Fprintf(&b, ": %s", l.Problem)
		}
		b.WriteByte('\n')
		for _, f := range l.Fields {
			fmt.Fprintf(&b, "    %d+%d %s: %s\n", f.Offset, f.Size, f.Name, f.Value)
		}
	}
	return b.String()
}

// TestTranscript compares what is read of each kind of frame with a transcript
// that a person has read.
func TestTranscript(t *testing.T) {
	const golden = "testdata/transcript.txt"
	all := frames(t)
	var b strings.Builder
	for _, name := range []string{
		"RDMA write", "RDMA refusal", "TCP with a tag", "labelled", "probe in tunnels", "VXLAN", "GRE", "fragment of IPv6",
		"checksum is wrong", "cut inside of TCP", "not an IPv4 version", "padded", "unknown type", "nothing",
	} {
		fmt.Fprintf(&b, "%s\n%s\n", name, print(Frame(all[name])))
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || b.String() != string(want) {
		t.Errorf("%v; frames read as\n%s\nwant\n%s", err, b.String(), want)
	}
}

// tile checks what holds for all bytes: layers follow each other from the first
// byte to the last, and fields lie inside of their layer.
func tile(t interface{ Fatalf(string, ...any) }, b []byte) []Layer {
	layers := Frame(b)
	at := 0
	for i, l := range layers {
		if l.Offset != at || l.Size < 0 || l.Name == "" {
			t.Fatalf("Frame(%x): layer %d begins at %d, want %d:\n%s", b, i, l.Offset, at, print(layers))
		}
		at += l.Size
		for _, f := range l.Fields {
			if f.Offset < l.Offset || f.Size < 1 || f.Offset+f.Size > at {
				t.Fatalf("Frame(%x): %s of %s is at %d+%d, outside of it:\n%s", b, f.Name, l.Name, f.Offset, f.Size, print(layers))
			}
		}
		if l.Problem != "" && i != len(layers)-1 && layers[i+1].Name != "padding" {
			t.Fatalf("Frame(%x): dissection continued after a problem:\n%s", b, print(layers))
		}
	}
	if at != len(b) {
		t.Fatalf("Frame(%x): layers end at %d of %d:\n%s", b, at, len(b), print(layers))
	}
	return layers
}

// last finds a field of the last layer that has it.
func last(layers []Layer, layer, field string) (v string) {
	for _, l := range layers {
		for _, f := range l.Fields {
			if strings.HasPrefix(l.Name, layer) && f.Name == field {
				v = f.Value
			}
		}
	}
	return v
}

// TestAgreesWithPacket changes bytes of good frames and cuts them: where
// wire/packet, which is written for speed, still finds a flow, the same
// addresses, TTL and ports are shown.
func TestAgreesWithPacket(t *testing.T) {
	all := frames(t)
	names := []string{"RDMA write", "RDMA refusal", "TCP with a tag", "labelled", "probe in tunnels", "VXLAN", "GRE"}
	rapid.Check(t, func(t *rapid.T) {
		b := append([]byte(nil), all[rapid.SampledFrom(names).Draw(t, "frame")]...)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		b = b[:rapid.IntRange(0, len(b)).Draw(t, "length")]
		layers := tile(t, b)
		var p packet.Packet
		if p.Parse(b) != nil || p.Depth == 0 {
			return
		}
		h := &p.Outer
		if p.Depth > 1 {
			h = &p.Inner
		}
		if h.Flags&(packet.Malformed|packet.TooDeep|packet.NoPorts|packet.Fragment) != 0 || h.Key.Proto != model.UDP && h.Key.Proto != model.TCP {
			return
		}
		name, ttl := "IPv4", "TTL"
		if h.Key.V6 {
			name, ttl = "IPv6", "hop limit"
		}
		transport := strings.ToUpper(h.Key.Proto.String())
		got := fmt.Sprintf("%s > %s ttl %s port %s", last(layers, name, "source"), last(layers, name, "destination"), last(layers, name, ttl), last(layers, transport, "destination port"))
		want := fmt.Sprintf("%s > %s ttl %d port %d", h.Key.Src, h.Key.Dst, h.TTL, h.Key.DstPort)
		if slices.ContainsFunc(layers, func(l Layer) bool { return l.Name == transport && l.Problem != "" }) {
			// Half a transport header has ports for wire/packet.
			got = strings.TrimSuffix(got, last(layers, transport, "destination port")) + strconv.Itoa(int(h.Key.DstPort))
		}
		if got != want {
			t.Fatalf("Frame(%x) shows %s; wire/packet reads %s:\n%s", b, got, want, print(layers))
		}
	})
}

func FuzzFrame(f *testing.F) {
	for _, b := range frames(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { tile(t, b) })
}
