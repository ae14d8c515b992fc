package flows

import "github.com/weft-telemetry/weft/sketch"

// finder takes flows out of a table, one after the other, and keeps them in
// the order in which it took them. It works on keys and flow counts alone:
// every flow it finds by itself was inserted, whatever packets were counted.
type finder[K sketch.Key] struct {
	*table[K]
	left []K // what is left of the table's keys

	// queue has the cells that were seen with one flow left, those before
	// head done with. It is never shortened, and as long as it can get.
	queue      []uint32
	head, tail int

	found []K      // the flows, in the order found
	cells []uint32 // of each flow, Tables in a row
	at    []uint32 // the cell that named each flow
}

// start copies the table and looks for its pure cells.
func (f *finder[K]) start(t *table[K]) {
	f.table = t
	f.left = append(f.left[:0], t.keys...)
	// A cell comes down to one flow once.
	if n := len(f.left) + 1; cap(f.queue) < n {
		f.queue = make([]uint32, n)
	}
	f.head, f.tail = 0, 0
	f.found, f.cells, f.at = f.found[:0], f.cells[:0], f.at[:0]
	last := len(*new(K)) - 1
	for i := range f.left {
		f.queue[f.tail] = uint32(i)
		if f.left[i][last]&countMask == none+1 {
			f.tail++
		}
	}
}

// peel removes flows that are alone in a cell until no cell is pure. It takes
// a constant time per flow and cell.
func (f *finder[K]) peel() {
	last := len(*new(K)) - 1
	var cells [sketch.MaxTables]uint32
	tables := int(f.family.Tables)
	queue, tail := f.queue, f.tail
	for ; f.head < tail; f.head++ {
		i := queue[f.head]
		key := f.left[i]
		if key[last]&countMask != none+1 {
			continue
		}
		key[last] &^= countMask
		h := sketch.HashOf(&f.family, &key)
		here := false
		for t := range tables {
			cells[t] = f.family.Cell(h, t)
			here = here || cells[t] == i
		}
		// A key that is left over where counts are damaged does not hash to
		// the cell it is in, or does not pass the filter.
		if !here || !f.filter.Has(&f.family, h) {
			continue
		}
		for _, at := range cells[:tables] {
			c := &f.left[at]
			for w := range len(key) {
				(*c)[w] ^= key[w]
			}
			(*c)[last]--
			// Whether a cell has become pure cannot be predicted: no branch.
			queue[tail] = at
			if (*c)[last]&countMask == none+1 {
				tail++
			}
		}
		f.found = append(f.found, key)
		f.cells = append(f.cells, cells[:tables]...)
		f.at = append(f.at, i)
	}
	f.tail = tail
}
