package packet_test

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Parse finds the flow of a frame.
func Example() {
	header := packet.IPv4{Length: packet.IPv4Size + packet.TCPSize, TTL: 64, Proto: model.TCP, Src: 0x0a000002, Dst: 0x0a010003}
	header.Checksum = header.Sum()
	frame := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
	frame = header.AppendTo(frame)
	frame = packet.TCP{SrcPort: 40000, DstPort: 80, Flags: uint16(packet.SYN)}.AppendTo(frame)

	var p packet.Packet
	if err := p.Parse(frame); err != nil {
		fmt.Println(err)
	}
	flow := p.Innermost()
	fmt.Println(flow.Key, "SYN", flow.TCPFlags&packet.SYN != 0)
	// Output:
	// tcp 10.0.0.2:40000 > 10.1.0.3:80 SYN true
}
