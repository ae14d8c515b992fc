package label_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Two switches label a packet; the last one reads the labels and restores it.
func Example() {
	header := packet.IPv4{Length: packet.IPv4Size + 8, TTL: 64, Proto: model.UDP, Src: 0x0a000002, Dst: 0x0a010003}
	header.Checksum = header.Sum()
	original := append(header.AppendTo(nil), make([]byte, 8)...)

	pkt := append(make([]byte, 0, 1500), original...) // Push needs capacity
	for _, id := range []model.NodeID{8, 12} {
		var err error
		pkt, err = label.Push(pkt, &label.Item{Switch: id, Egress: 4, Latency: 900 * time.Nanosecond}, label.Params{})
		if err != nil {
			fmt.Println(err)
		}
	}

	block, err := label.Inspect(pkt)
	if err != nil {
		fmt.Println(err)
	}
	for i := range block.Len() {
		it := block.Item(i)
		fmt.Println("switch", it.Switch, "egress", it.Egress, "latency", it.Latency)
	}
	pkt, err = label.Strip(pkt)
	fmt.Println("restored", bytes.Equal(pkt, original), err)
	// Output:
	// switch 12 egress 4 latency 900ns
	// switch 8 egress 4 latency 900ns
	// restored true <nil>
}
