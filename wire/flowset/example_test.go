package flowset_test

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// A switch splits the cells of a slot into chunks; a collector reads them.
func Example() {
	head := flowset.Header{
		Switch: 12, Slot: 8, Length: 10 * time.Millisecond,
		Geometry: flowset.Geometry{FilterHashes: 4, FilterBits: 64, Tables: 3, TableCells: 2},
		Layout:   flowset.Layout{Key: model.KeyLen4, Flows: 1, Packets: 4, Bytes: 4, Ports: 2},
		Counts:   flowset.Counts{Packets: 10, Flows: 1},
	}
	split, err := head.Split(200)
	if err != nil {
		fmt.Println(err)
	}
	for span, ok := split.Next(); ok; span, ok = split.Next() {
		b := head.Open(nil, span)
		for i := span.First; i < span.First+span.Count; i++ {
			if span.Section == flowset.Filter {
				b = append(b, 0xff)
			} else {
				b = head.Layout.AppendCell(b, &flowset.Cell{Flows: i % 2, Packets: uint64(10 * (i % 2))})
			}
		}
		var chunk flowset.Chunk
		if _, err := chunk.Parse(flowset.Seal(b, 0)); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("section %d: units %d to %d of %d\n", chunk.Section, chunk.First, int(chunk.First)+chunk.Len()-1, chunk.Units(chunk.Section))
		if chunk.Section == flowset.Cells {
			var cell flowset.Cell
			chunk.Cell(1, &cell)
			fmt.Println("cell 1:", cell.Flows, "flow,", cell.Packets, "packets")
		}
	}
	// Output:
	// section 1: units 0 to 7 of 8
	// section 2: units 0 to 3 of 6
	// cell 1: 1 flow, 10 packets
	// section 2: units 4 to 5 of 6
	// cell 1: 1 flow, 10 packets
}
