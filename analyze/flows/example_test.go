package flows_test

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// A switch counts two flows into a flowset and exports it in chunks; the
// analyzer assembles the chunks and decodes the flows.
func Example() {
	geometry := sketch.Geometry{FilterHashes: 4, FilterBits: 256, Tables: 3, TableCells: 16}
	header := flowset.Header{
		Switch: 1, Seed: 42, Slot: 7, Start: 70e6, Length: 10 * time.Millisecond,
		Geometry: flowset.Geometry(geometry),
		Layout:   flowset.Layout{Key: model.KeyLen4, Flows: 2, Packets: 4, Bytes: 4, Ports: 2},
	}
	set, err := sketch.NewSet[sketch.Key4](geometry, header.Seed)
	if err != nil {
		panic(err)
	}
	count := func(port uint16, packets int) {
		flow := model.FlowKey{
			Src: model.Addr4(0x0a000001), Dst: model.Addr4(0x0a000102), SrcPort: port, DstPort: 4791, Proto: model.UDP,
		}
		key := sketch.Pack4(&flow)
		for range packets {
			if hash, isNew := set.AddPacket(&key, 1000); isNew {
				set.InsertFlow(&key, hash, 1, 3)
			}
		}
	}
	count(49152, 20)
	count(49153, 5)
	header.Counts = flowset.Counts{Packets: 25, Bytes: 25_000, Flows: set.Inserted()}

	assembler, err := flows.NewAssembler(flows.DefaultConfig())
	if err != nil {
		panic(err)
	}
	split, err := header.Split(1500)
	if err != nil {
		panic(err)
	}
	var complete []*flows.Flowset
	for span, ok := split.Next(); ok; span, ok = split.Next() {
		chunk := header.Open(nil, span)
		if span.Section == flowset.Filter {
			chunk = set.Filter().AppendBytes(chunk, span.First, span.Count)
		} else {
			for i := span.First; i < span.First+span.Count; i++ {
				c := set.Cell(i)
				cell := flowset.Cell{Flows: c.Flows, Packets: c.Packets, Bytes: c.Bytes, InPort: c.In, OutPort: c.Out}
				sketch.PutKey(&cell.Key, &c.Key)
				chunk = header.Layout.AppendCell(chunk, &cell)
			}
		}
		if complete, err = assembler.AddChunk(70e6, flowset.Seal(chunk, 0), complete); err != nil {
			panic(err)
		}
	}
	for _, fs := range complete {
		decoded := flows.SingleDecode(fs)
		for _, r := range decoded.Records {
			fmt.Println(r.Key, r.Packets, "packets", r.Bytes, "bytes", "ports", r.In, r.Out, r.Grade)
		}
		fmt.Println("complete:", decoded.Complete())
	}
	// Unordered output:
	// udp 10.0.0.1:49152 > 10.0.1.2:4791 20 packets 20000 bytes ports 1 3 exact
	// udp 10.0.0.1:49153 > 10.0.1.2:4791 5 packets 5000 bytes ports 1 3 exact
	// complete: true
}
