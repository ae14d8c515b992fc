package control

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/flowset"
)

func intentOf(t testing.TB, f *topo.Fabric) *topo.Intent {
	t.Helper()
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return topo.NewIntent(routes)
}

// flowsetHeader is that of a table of a few cells.
func flowsetHeader(sw model.NodeID, start model.Time, length time.Duration) flowset.Header {
	return flowset.Header{
		Switch: sw, Slot: uint32(int64(start) / int64(length)), Start: start, Length: length,
		Geometry: flowset.Geometry{FilterHashes: 4, FilterBits: 64, Tables: 3, TableCells: 4},
		Layout:   flowset.Layout{Key: model.KeyLen4, Flows: 1, Packets: 4, Bytes: 4, Ports: 2},
	}
}

// flowsetChunk is the filter of an empty flowset.
func flowsetChunk(sw model.NodeID, start model.Time, length time.Duration) []byte {
	h := flowsetHeader(sw, start, length)
	return flowset.Chunk{Header: h, Section: flowset.Filter, Data: make([]byte, 8)}.AppendTo(nil)
}

// emptyFlowset is both chunks of a flowset without flows.
func emptyFlowset(h flowset.Header) [2][]byte {
	cells := make([]byte, int(h.Units(flowset.Cells))*h.Layout.Size())
	return [2][]byte{
		flowset.Chunk{Header: h, Section: flowset.Filter, Data: make([]byte, h.Units(flowset.Filter))}.AppendTo(nil),
		flowset.Chunk{Header: h, Section: flowset.Cells, Data: cells}.AppendTo(nil),
	}
}

// withSwitch is a chunk under another switch's id.
func withSwitch(data []byte, sw model.NodeID) []byte {
	var c flowset.Chunk
	if _, err := c.Parse(data); err != nil {
		panic(err)
	}
	c.Switch = sw
	return c.AppendTo(nil)
}
