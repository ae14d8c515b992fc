package bench

import (
	"context"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

var packetSuite = Suite{
	Name:  "packet",
	About: "parse a frame to its flow key, compared with gopacket's DecodingLayerParser",
	Input: "100-byte frames: TCP in IPv4; TCP in IPv4 inside VXLAN",
	run: func(ctx context.Context) ([]Result, error) {
		plain := tcpFrame(100)
		tunnelled := vxlanFrame(plain)
		var results []Result
		for _, c := range []struct {
			name  string
			frame []byte
			peer  []gopacket.DecodingLayer
			goal  float64
		}{
			{"parse TCP/IPv4 to flow key", plain, []gopacket.DecodingLayer{
				&layers.Ethernet{}, &layers.IPv4{}, &layers.TCP{}, new(gopacket.Payload),
			}, 5},
			{"parse VXLAN to inner flow key", tunnelled, []gopacket.DecodingLayer{
				&layers.Ethernet{}, &layers.IPv4{}, &layers.UDP{}, &layers.VXLAN{}, &layers.TCP{}, new(gopacket.Payload),
			}, 2},
		} {
			var p packet.Packet
			parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, c.peer...)
			var decoded []gopacket.LayerType
			ns, err := alternateRounds(ctx, func(n int) {
				for range n {
					if p.Parse(c.frame) != nil {
						panic("bench: weft rejects the frame")
					}
				}
			}, func(n int) {
				for range n {
					if parser.DecodeLayers(c.frame, &decoded) != nil {
						panic("bench: gopacket rejects the frame")
					}
				}
			})
			if err != nil {
				return nil, err
			}
			results = append(results, lowerIsBetter(c.name, ns[0], "ns", "gopacket DecodingLayerParser", ns[1], c.goal))
		}
		return results, nil
	},
}

// tcpFrame builds a TCP/IPv4 frame of n bytes.
func tcpFrame(n int) []byte {
	b := packet.Ethernet{
		Dst: model.MAC{2, 0, 0, 0, 0, 2}, Src: model.MAC{2, 0, 0, 0, 0, 1},
		Type: packet.TypeIPv4,
	}.AppendTo(nil)
	ip := packet.IPv4{
		Length: uint16(n - packet.EthernetSize), ID: 7, TTL: 64, Proto: model.TCP, Src: 0x0a000002,
		Dst: 0x0a010002,
	}
	ip.Checksum = ip.Sum()
	b = ip.AppendTo(b)
	b = packet.TCP{SrcPort: 40000, DstPort: 80, Seq: 1, Flags: uint16(packet.ACK), Window: 512}.AppendTo(b)
	return append(b, make([]byte, n-len(b))...)
}

// vxlanFrame wraps a frame.
func vxlanFrame(inner []byte) []byte {
	b := packet.Ethernet{
		Dst: model.MAC{2, 0, 0, 0, 0, 4}, Src: model.MAC{2, 0, 0, 0, 0, 3},
		Type: packet.TypeIPv4,
	}.AppendTo(nil)
	length := packet.IPv4Size + packet.UDPSize + packet.VXLANSize + len(inner)
	ip := packet.IPv4{Length: uint16(length), TTL: 64, Proto: model.UDP, Src: 0x0aff0001, Dst: 0x0aff0002}
	ip.Checksum = ip.Sum()
	b = ip.AppendTo(b)
	b = packet.UDP{SrcPort: 51000, DstPort: packet.VXLANPort, Length: uint16(length - packet.IPv4Size)}.AppendTo(b)
	b = packet.VXLAN{Flags: 8, VNI: 42}.AppendTo(b)
	return append(b, inner...)
}
