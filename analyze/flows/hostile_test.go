package flows

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// crowd draws keys that all fall into the first few cells of every sub-table,
// as an attacker who knows the switch's seed could choose them. At the next switch
// no two of them share all their cells: two that do so at both switches, one
// pair in a million, no decoder could distinguish.
func crowd(f, next *sketch.Family, n int, few uint32, r *rand.Rand) (keys []model.FlowKey) {
	taken := map[[sketch.MaxTables]uint32]bool{}
	for len(keys) < n {
		k := model.FlowKey{Src: model.Addr4(r.Uint32()), Dst: model.Addr4(r.Uint32()), SrcPort: uint16(r.Uint32()), DstPort: 80, Proto: model.TCP}
		key := sketch.Pack4(&k)
		h, there := sketch.HashOf(f, &key), sketch.HashOf(next, &key)
		inside := true
		var cells [sketch.MaxTables]uint32
		for t := range int(f.Tables) {
			inside = inside && f.Cell(h, t)-uint32(t)*f.TableCells < few
			cells[t] = next.Cell(there, t)
		}
		if inside && !taken[cells] {
			taken[cells] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// TestHostileFlowsGiveDoubt crowds flows into a few cells of one switch, so that
// some share all their cells. Nothing may be wrong there; the next switch, whose
// seed they were not chosen for, decodes them all.
func TestHostileFlowsGiveDoubt(t *testing.T) {
	fabric, err := topo.Dumbbell(1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	doubted := 0
	rapid.Check(t, func(rt *rapid.T) {
		g := sketch.Geometry{FilterHashes: 24, FilterBits: 1 << 14, Tables: rapid.Uint8Range(3, 4).Draw(rt, "tables"), TableCells: 60}
		l := flowset.Layout{Key: model.KeyLen4, Flows: 2, Packets: 4, Bytes: 4}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "traffic"), 5))
		var at []*encoder
		for _, sw := range fabric.Switches() {
			at = append(at, newEncoder(t, sw, r.Uint64(), g, l))
		}
		flows := crowd(at[0].v4.Family(), at[1].v4.Family(), rapid.IntRange(2, 40).Draw(rt, "crowd"), rapid.Uint32Range(6, 12).Draw(rt, "cells"), r)
		for range rapid.IntRange(0, 60).Draw(rt, "others") {
			flows = append(flows, someKey(r, false))
		}
		for _, k := range flows {
			packets := 2 + r.IntN(9)
			at[0].add(k, packets, 100, 0, 0)
			at[1].add(k, packets-r.IntN(2), 100, 0, 0)
		}
		tr := &traffic{fabric: fabric, recorded: []*recorded{at[0].done(), at[1].done()}}
		sets := tr.sets(t, 0, nil)
		alone := SingleDecode(sets[0])
		checkRecords(rt, tr.recorded[0], &alone)
		for i, d := range NetDecode(sets, Options{}, NeighbourGuide(fabric, sets)) {
			checkRecords(rt, tr.recorded[i], &d)
			if d.Undecoded != 0 {
				rt.Fatalf("%d flows undecoded at switch %d; want none", d.Undecoded, i)
			}
		}
		if alone.Undecoded > 0 {
			doubted++
		}
	})
	if doubted == 0 {
		t.Error("no crowd was too dense for its switch; the test shows nothing")
	}
}
