package flowwatch

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// smallWatch is a watch with little memory.
func smallWatch(t *testing.T) (*Watch, *topo.Fabric) {
	t.Helper()
	fabric, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(fabric, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig(topo.NewIntent(routes))
	cfg.Memory = 4 * model.MiB
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w, fabric
}

// addEmpty adds the whole flowset of a switch, or of one of its ports, without flows.
func (w *Watch) addEmpty(t *testing.T, sw model.NodeID, scope model.PortID, slot uint32, start model.Time) {
	t.Helper()
	w.addFlowset(t, wire.Header{Switch: sw, Scope: scope, Slot: slot, Start: start})
}

// addFlowset adds a flowset with the header's counts and empty cells.
func (w *Watch) addFlowset(t *testing.T, about wire.Header) {
	t.Helper()
	h := wire.Header{
		Switch: about.Switch, Scope: about.Scope, Slot: about.Slot, Start: about.Start, Length: w.cfg.Slot, Counts: about.Counts,
		Layout:   wire.Layout{Key: model.KeyLen4, Flows: 1, Packets: 4},
		Geometry: wire.Geometry{FilterHashes: 8, FilterBits: 1024, Tables: 3, TableCells: 200},
	}
	cells := make([]byte, int(h.Units(wire.Cells))*h.Layout.Size())
	for _, c := range []wire.Chunk{
		{Header: h, Section: wire.Filter, Data: make([]byte, h.Units(wire.Filter))},
		{Header: h, Section: wire.Cells, Data: cells},
	} {
		if err := w.IngestReport(h.Start, c.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWaitingFlowsetsAreBounded: the flowsets of slots that wait for other switches
// are within the memory limit, and none is held when no slot needs it any longer.
func TestWaitingFlowsetsAreBounded(t *testing.T) {
	w, fabric := smallWatch(t)
	cfg, sw := &w.cfg, fabric.Switches()[0]
	const slots = 400 // each takes more than 16 KiB
	for i := range uint32(slots) {
		w.addEmpty(t, sw, 0, i, model.Time(i)*model.Time(cfg.Slot))
	}
	waiting, kept := 0, 0
	for _, sets := range w.gather.open {
		for _, fs := range sets {
			if waiting++; !fs.Dropped() {
				kept++
			}
		}
	}
	if most := int(cfg.Memory / 2 / (16 * model.KiB)); waiting != slots || kept == 0 || kept > most || w.asm.Held() > cfg.Memory/2 {
		t.Errorf("%d of %d flowsets wait, %d of them kept, %v; want at most %d, %v", waiting, slots, kept, w.asm.Held(), most, cfg.Memory/2)
	}
	if n := len(slices.Collect(w.Flush(0))); n != slots || w.asm.Held() != 0 {
		t.Errorf("%d slots, %v held after the last; want %d, nothing", n, w.asm.Held(), slots)
	}
	w.addEmpty(t, sw, 0, slots, model.Time(cfg.Slot)) // late
	if w.Stats().Late != 1 || w.asm.Held() != 0 {
		t.Errorf("%d late, %v held; want 1, nothing", w.Stats().Late, w.asm.Held())
	}
}

// TestDecodingIsBounded: of a slot whose flowsets are within the limit, but take more
// than it to decode, some are left out and counted.
func TestDecodingIsBounded(t *testing.T) {
	w, fabric := smallWatch(t)
	for _, sw := range fabric.Switches() {
		for scope := range model.PortID(4) {
			w.addEmpty(t, sw, scope, 1, 0)
		}
	}
	held, need := 0, model.Bytes(0)
	for _, fs := range w.gather.open[0] {
		if size := fs.DecodeSize(); size > 0 {
			held++
			need += size
		}
	}
	limit := w.cfg.Memory / 2
	if need <= limit {
		t.Fatalf("%d flowsets take %v to decode; want more than %v, or the test proves nothing", held, need, limit)
	}
	slots := slices.Collect(w.Flush(0))
	if len(slots) != 1 {
		t.Fatalf("%d slots; want 1", len(slots))
	}
	n := len(slots[0].Decoded)
	if used := need / model.Bytes(held) * model.Bytes(n); n == 0 || used > limit || w.Stats().Undecoded != uint64(held-n) {
		t.Errorf("%d of %d flowsets decoded in %v, %d counted as not; want some, within %v", n, held, used, w.Stats().Undecoded, limit)
	}
}

// TestUndecodedFlowsAreCounted: flows that a switch says it has counted and that no
// cell shows are lost, and are counted.
func TestUndecodedFlowsAreCounted(t *testing.T) {
	w, fabric := smallWatch(t)
	for i, sw := range fabric.Switches()[:2] {
		w.addFlowset(t, wire.Header{Switch: sw, Slot: 1, Counts: wire.Counts{Flows: uint32(3 + i), Packets: 10}})
	}
	// Of a third switch the tables of all ports take more memory to decode than there is.
	excess := uint64(0)
	for scope := range model.PortID(80) {
		w.addFlowset(t, wire.Header{Switch: fabric.Switches()[2], Scope: scope % 5, Slot: 1 + uint32(scope), Counts: wire.Counts{Flows: 2, Packets: 10}})
		excess += 2
	}
	if n := len(slices.Collect(w.Flush(0))); n != 1 || w.Stats().Undecoded == 0 || w.Stats().UndecodedFlows != 7+excess {
		t.Errorf("%d slots, %d flowsets left out, %d undecoded flows; want 1, some and %d", n, w.Stats().Undecoded, w.Stats().UndecodedFlows, 7+excess)
	}
}
