package packet

import (
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/weft-telemetry/weft/model"
)

// tcpFrame is a 100-byte TCP/IPv4 frame.
func tcpFrame() []byte {
	b := Ethernet{Dst: model.MAC{2, 0, 0, 0, 0, 2}, Src: model.MAC{2, 0, 0, 0, 0, 1}, Type: TypeIPv4}.AppendTo(nil)
	ip := IPv4{Length: 86, ID: 7, TTL: 64, Proto: model.TCP, Src: 0x0a000002, Dst: 0x0a000102}
	ip.Checksum = ip.Sum()
	b = ip.AppendTo(b)
	b = TCP{SrcPort: 40000, DstPort: 80, Seq: 1, Flags: uint16(ACK), Window: 100}.AppendTo(b)
	return append(b, make([]byte, 46)...)
}

func BenchmarkParse(b *testing.B) {
	frame := tcpFrame()
	b.Run("TCPv4", func(b *testing.B) {
		var p Packet
		b.ReportAllocs()
		for b.Loop() {
			if err := p.Parse(frame); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gopacket", func(b *testing.B) {
		var eth layers.Ethernet
		var ip layers.IPv4
		var tcp layers.TCP
		var payload gopacket.Payload
		parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &eth, &ip, &tcp, &payload)
		var decoded []gopacket.LayerType
		b.ReportAllocs()
		for b.Loop() {
			if err := parser.DecodeLayers(frame, &decoded); err != nil {
				b.Fatal(err)
			}
		}
	})
}
