package flows

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// TestUsualPeelEqualsGeneral compares the two functions that peel a table of IPv4 keys and three
// sub-tables, whole and damaged.
func TestUsualPeelEqualsGeneral(t *testing.T) {
	emptied := 0
	var usual, general alone[sketch.Key4]
	rapid.Check(t, func(rt *rapid.T) {
		g := sketch.Geometry{
			FilterHashes: 12, FilterBits: 64 * rapid.Uint32Range(4, 300).Draw(rt, "filter words"),
			Tables: 3, TableCells: rapid.Uint32Range(1, 60).Draw(rt, "cells"),
		}
		e := newEncoder(t, 3, rapid.Uint64().Draw(rt, "hash seed"), g, productLayout)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "traffic"), 1))
		for range rapid.IntRange(0, g.Cells()).Draw(rt, "flows") {
			e.add(someKey(r, false), 1+r.IntN(4), 64+r.Uint32N(1400), 1, 2)
		}
		fs := assembled(t, drawDamage(rt).inflict(rt, t, e.done(), rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "damage"), 2)))...)
		table := fs.body.(*table[sketch.Key4])
		want, got := fs.emptyResult(), fs.emptyResult()
		want.Records, got.Records = make([]Record, len(table.sums)), make([]Record, len(table.sums))
		list := make([]CompactRecord, len(table.sums))
		usual.odd, general.odd = false, false
		total, queued := general.load(table, false)
		n, ok := general.peel(fs, table, queued, &want, total)
		total, queued = usual.load(table, false)
		m, same := peelUsual(&usual, fs, &table.family, table.filter, queued, list, total)
		if n != m || ok != same || ok && general.odd != usual.odd {
			rt.Fatalf("%d flows, emptied %v, odd %v; want %d, %v, %v", m, same, usual.odd, n, ok, general.odd)
		}
		if restoreUsual(usual.left, &table.family, list[:m]); !slices.Equal(usual.left, table.sums) {
			rt.Fatalf("after %d flows were removed and put back, the table is another", m)
		}
		got.putRecords(list[:m], &fs.Counts, true)
		want.Records, got.Records = want.Records[:n], got.Records[:n]
		equalResults(rt, &got, &want)
		if ok && n > 0 {
			emptied++
		}
	})
	if emptied == 0 {
		t.Error("no table emptied; the test needs some")
	}
}

// TestMemoryIsUsedAgain: results in memory of slots before, and of cells of flowsets
// before, are those without it, whatever they had.
func TestMemoryIsUsedAgain(t *testing.T) {
	var memory Memory
	cfg := DefaultConfig()
	cfg.HoldEmitted = true
	reused, err := NewAssembler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	slots, spare := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		g := sketch.Geometry{FilterHashes: 12, FilterBits: 1 << 14, Tables: 3, TableCells: rapid.SampledFrom([]uint32{50, 60}).Draw(rt, "cells")}
		var fresh, again []*Flowset
		slots++
		for sw := range rapid.IntRange(1, 3).Draw(rt, "switches") {
			r := drawRecorded(rt, t, g)
			r.header.Switch, r.header.Slot = model.NodeID(sw+1), uint32(slots)
			chunks := damage{lost: rapid.SampledFrom([]int{0, 8}).Draw(rt, "lost")}.inflict(rt, t, r, rand.New(rand.NewPCG(1, uint64(slots))))
			fresh = append(fresh, assembled(t, chunks...))
			var sets []*Flowset
			had := len(reused.memory.cells4.free) + len(reused.memory.cells6.free)
			for _, c := range chunks {
				if sets, err = reused.AddChunk(0, c, sets); err != nil {
					rt.Fatal(err)
				}
			}
			sets = reused.Flush(sets)
			if len(reused.memory.cells4.free)+len(reused.memory.cells6.free) < had {
				spare++
			}
			again = append(again, sets...)
		}
		if len(again) != len(fresh) {
			rt.Fatalf("%d flowsets; want %d", len(again), len(fresh))
		}
		got, want := NetDecode(again, Options{Memory: &memory}), NetDecode(fresh, Options{})
		for i := range want {
			equalResults(rt, &got[i], &want[i])
		}
		reused.DropSpare()
		reused.Recycle(again)
	})
	if spare == 0 {
		t.Error("no cells were used again; the test needs some")
	}
}

// TestMissingCellsAreReset: cells that do not arrive show nothing of the flowset that had
// their memory before, even if it had the same flows in the same cells.
func TestMissingCellsAreReset(t *testing.T) {
	e := newEncoder(t, 1, 7, sketch.Geometry{FilterHashes: 12, FilterBits: 1 << 14, Tables: 3, TableCells: 60}, productLayout)
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		e.add(someKey(rnd, false), 1+rnd.IntN(4), 64+rnd.Uint32N(1400), 1, 2)
	}
	r := e.done()
	cfg := DefaultConfig()
	cfg.HoldEmitted = true
	a, err := NewAssembler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	assemble := func(chunks [][]byte) *Flowset {
		var sets []*Flowset
		for _, c := range chunks {
			if sets, err = a.AddChunk(0, c, sets); err != nil {
				t.Fatal(err)
			}
		}
		if sets = a.Flush(sets); len(sets) != 1 {
			t.Fatalf("%d flowsets; want 1", len(sets))
		}
		return sets[0]
	}
	var memory Memory
	decode := func(fs *Flowset, m *Memory) Decoded { return NetDecode([]*Flowset{fs}, Options{Memory: m})[0] }
	whole := assemble(r.chunks(t, 500))
	if d := decode(whole, &memory); !d.Complete() {
		t.Fatalf("%d flows undecoded; want none", d.Undecoded)
	}
	cells := &whole.body.(*table[sketch.Key4]).sums[0]
	a.Recycle([]*Flowset{whole})

	r.header.Slot++
	var kept [][]byte
	lost := 0
	for _, b := range r.chunks(t, 500) {
		var c flowset.Chunk
		if _, err := c.Parse(b); err != nil {
			t.Fatal(err)
		}
		if c.Section == flowset.Cells && c.First > 0 {
			lost++
			continue
		}
		kept = append(kept, b)
	}
	again := assemble(kept)
	if lost == 0 || &again.body.(*table[sketch.Key4]).sums[0] != cells {
		t.Fatalf("%d chunks of cells are lost; want some, and the cells of the slot before", lost)
	}
	got, want := decode(again, &memory), decode(assembled(t, kept...), nil)
	if want.Undecoded == 0 || got.Undecoded != want.Undecoded || !slices.Equal(got.Records, want.Records) {
		t.Errorf("%d records, %d flows undecoded; want %d, %d and the same records", len(got.Records), got.Undecoded, len(want.Records), want.Undecoded)
	}
}

// TestSteadySlotsAllocateNoRecords: decoding slot after slot in the same memory, what is
// allocated does not grow with the flows.
func TestSteadySlotsAllocateNoRecords(t *testing.T) {
	const flows = 20_000
	r := slotOf(t, 1, flows)
	a, err := NewAssembler(Config{MaxOpen: 4, MaxCells: 1 << 20, MaxMemory: 1 << 30, HoldEmitted: true, Timeout: 1})
	if err != nil {
		t.Fatal(err)
	}
	var memory Memory
	slot := uint32(0)
	allocated := func() uint64 {
		slot++
		r.header.Slot = slot
		chunks := r.chunks(t, 1400)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var sets []*Flowset
		for _, c := range chunks {
			if sets, err = a.AddChunk(0, c, sets); err != nil {
				t.Fatal(err)
			}
		}
		a.DropSpare()
		if d := NetDecode(sets, Options{Workers: 1, Memory: &memory}); len(d) != 1 || !d[0].Complete() {
			t.Fatalf("%d results; want one that is complete", len(d))
		}
		a.Recycle(sets)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated()
	// The filter is new in every slot, as results of earlier slots keep theirs.
	if n, most := allocated(), uint64(planned(flows).FilterBits/8+64<<10); n > most {
		t.Errorf("a slot of %d flows allocates %d bytes; want at most %d, which is its filter and what does not depend on flows", flows, n, most)
	}
}
