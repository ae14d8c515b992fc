package sketch_test

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
)

// A switch counts packets in cells; a collector peels the flows out of them.
func Example() {
	geometry := sketch.Geometry{FilterHashes: 4, FilterBits: 1024, Tables: 3, TableCells: 16}
	set, err := sketch.NewSet[sketch.Key4](geometry, 1)
	if err != nil {
		fmt.Println(err)
	}
	flow, err := model.ParseFlowKey("udp 10.0.0.2:49152 > 10.1.0.3:4791")
	if err != nil {
		fmt.Println(err)
	}
	key := sketch.Pack4(&flow)
	for range 3 {
		if hash, isNew := set.AddPacket(&key, 1000); isNew {
			set.InsertFlow(&key, hash, 1, 4)
		}
	}

	var peeler sketch.Peeler[sketch.Key4]
	n := peeler.Peel(set.Family(), set.Filter(), set.AppendCells(nil), func(c *sketch.Cell[sketch.Key4]) {
		fmt.Println(c.Key.FlowKey(), "port", c.In, "to", c.Out, "packets", c.Packets, "bytes", c.Bytes)
	})
	fmt.Println("flows", n)
	// Output:
	// udp 10.0.0.2:49152 > 10.1.0.3:4791 port 1 to 4 packets 3 bytes 3000
	// flows 1
}
