package flows

import (
	"slices"

	"github.com/weft-telemetry/weft/sketch"
)

// peeler removes flows from a table, one after the other, and keeps them in the
// order of removal. It works on keys and flow counts alone: every flow it finds
// by itself was inserted, whatever packets were counted.
type peeler[K sketch.Key] struct {
	*table[K]
	left []K // what is left of the table's keys

	// queue holds the cells that showed one flow left, or one too many removed;
	// those before head are done.
	queue      []uint32
	head, tail int

	found  []K      // the flows, in the order found
	cells  []uint32 // of each flow, Tables in a row
	source []uint32 // the cell that gave each flow; noCell: it was claimed
	ids    []uint32 // their ids among all switches' flows; in NetDecode only

	// Claims that the table disproved: their cells end with a flow count below
	// zeroFlows. They pass the filter and are not in the table.
	undone []K
}

const noCell = ^uint32(0)

// showsSingleKey reports whether a cell shows a single key: that of the one flow
// left in it, or of one flow too many removed.
func showsSingleKey(lastWord uint64) bool { return (lastWord&countMask-(zeroFlows-1))&^2 == 0 }

// load copies a table with about the given number of flows, and queues the first
// pure cells. It reuses the memory of the table before.
func (f *peeler[K]) load(t *table[K], flows int) {
	n := min(flows, len(t.sums)+len(t.sums)/4)
	*f = peeler[K]{
		table: t, left: slices.Grow(f.left[:0], len(t.sums))[:len(t.sums)], queue: f.queue,
		found: slices.Grow(f.found[:0], n), source: slices.Grow(f.source[:0], n),
		cells: slices.Grow(f.cells[:0], n*int(t.family.Tables)),
	}
	if size := len(t.sums) + sketch.MaxTables; len(f.queue) < size {
		f.queue = make([]uint32, size)
	}
	last := len(*new(K)) - 1
	for i := range f.left {
		f.left[i] = t.sums[i].key
		f.queue[f.tail] = uint32(i)
		if showsSingleKey(f.left[i][last]) {
			f.tail++
		}
	}
}

// peel removes flows that are alone in a cell until no cell is pure. It takes
// a constant time per flow and cell.
func (f *peeler[K]) peel() {
	last := len(*new(K)) - 1
	var cells [sketch.MaxTables]uint32
	tables := int(f.family.Tables)
	for ; f.head < f.tail; f.head++ {
		i := f.queue[f.head]
		key := f.left[i]
		count := key[last] & countMask
		key[last] &^= countMask
		if count != zeroFlows+1 {
			if count == zeroFlows-1 {
				f.undoClaim(i, &key)
			}
			continue
		}
		h := sketch.HashOf(&f.family, &key)
		f.family.CellsOf(h, &cells)
		// A residual key of damaged counts does not hash to the cell it is in,
		// or does not pass the filter.
		if cells[i/f.family.TableCells%sketch.MaxTables] != i || !f.filter.Has(&f.family, h) || f.undone != nil &&
			f.wasUndone(&key) {
			continue
		}
		f.removeFlow(&key, cells[:tables], i)
	}
	f.head, f.tail = 0, 0
}

// removeFlow removes a flow from its cells.
func (f *peeler[K]) removeFlow(key *K, cells []uint32, at uint32) {
	last := len(*key) - 1
	if f.tail+len(cells) > len(f.queue) {
		// The queue starts with capacity for every cell, and a cell comes down
		// to one flow once: only undone claims lead here.
		f.queue = append(f.queue, make([]uint32, len(f.queue))...)
	}
	queue, tail := f.queue, f.tail
	for _, i := range cells {
		c := &f.left[i]
		for w := range len(*key) {
			(*c)[w] ^= (*key)[w]
		}
		(*c)[last]--
		// Whether a cell has become pure cannot be predicted: no branch.
		queue[tail] = i
		if showsSingleKey((*c)[last]) {
			tail++
		}
	}
	f.tail = tail
	f.found = append(f.found, *key)
	f.cells = append(f.cells, cells...)
	f.source = append(f.source, at)
}

// claimFlow removes a flow that was found elsewhere, if it passes the filter and
// none of its cells is empty. Claims may be wrong; peel undoes those that are.
func (f *peeler[K]) claimFlow(key *K) (claimed, passes bool) {
	h := sketch.HashOf(&f.family, key)
	if !f.filter.Has(&f.family, h) {
		return false, false
	}
	last := len(*key) - 1
	var array [sketch.MaxTables]uint32
	f.family.CellsOf(h, &array)
	cells := array[:f.family.Tables]
	for _, i := range cells {
		if f.left[i][last]&countMask <= zeroFlows {
			return false, true
		}
	}
	f.removeFlow(key, cells, noCell)
	return true, true
}

// undoClaim puts a claimed flow back that a cell disproves: all its flows are
// removed and this one is too many.
func (f *peeler[K]) undoClaim(i uint32, key *K) {
	h := sketch.HashOf(&f.family, key)
	if f.family.Cell(h, int(i/f.family.TableCells)) != i {
		return
	}
	tables := int(f.family.Tables)
	for flow := len(f.found) - 1; flow >= 0; flow-- {
		if f.source[flow] != noCell || f.found[flow] != *key {
			continue
		}
		f.undone = append(f.undone, *key)
		// The others keep their positions and ids: the flow's position stays,
		// marked as undone.
		f.source[flow] = claimUndone
		last := len(*key) - 1
		for _, c := range f.cells[flow*tables : (flow+1)*tables] {
			for w := range len(*key) {
				f.left[c][w] ^= (*key)[w]
			}
			f.left[c][last]++
			f.enqueueIfSingle(c)
		}
		return
	}
}

// claimUndone marks a flow whose claim was undone.
const claimUndone = noCell - 1

// enqueueIfSingle queues a cell if it shows a single key.
func (f *peeler[K]) enqueueIfSingle(i uint32) {
	last := len(f.left[i]) - 1
	if !showsSingleKey(f.left[i][last]) {
		return
	}
	if f.tail == len(f.queue) {
		f.queue = append(f.queue, make([]uint32, len(f.queue))...)
	}
	f.queue[f.tail] = i
	f.tail++
}

func (f *peeler[K]) wasUndone(key *K) bool {
	for i := range f.undone {
		if f.undone[i] == *key {
			return true
		}
	}
	return false
}

// compact removes the positions of undone claims, once all flows have ids.
func (f *peeler[K]) compact() {
	if f.undone == nil {
		return
	}
	tables := int(f.family.Tables)
	n := 0
	for i := range f.found {
		if f.source[i] == claimUndone {
			continue
		}
		f.found[n], f.source[n] = f.found[i], f.source[i]
		copy(f.cells[n*tables:(n+1)*tables], f.cells[i*tables:])
		f.ids[n] = f.ids[i]
		n++
	}
	f.found, f.source, f.cells, f.ids = f.found[:n], f.source[:n], f.cells[:n*tables], f.ids[:n]
}
