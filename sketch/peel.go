package sketch

// Peeler decodes the flows of a table one by one: a pure cell, which holds a
// single flow, reveals it, and removing the flow from its other cells may make
// those pure. The memory is reused for every table.
type Peeler[K Key] struct{ queue []uint32 }

// PureCell reports whether the cell at index i holds exactly one flow, and
// returns its hash. A flow count of 1 is not enough: a key that was never
// inserted can remain where counts are damaged or a false positive has hidden a
// flow. The key must also hash to this very cell and pass the filter.
func PureCell[K Key](f *Family, b Filter, cells []Cell[K], i uint32) (Hash, bool) {
	c := &cells[i]
	if c.Flows != 1 {
		return Hash{}, false
	}
	h := HashOf(f, &c.Key)
	return h, f.Cell(h, int(i/f.TableCells)) == i && b.Has(f, h)
}

// Peel removes from cells all flows it can and calls found with each; the
// argument is valid only during the call. Cells must be as encoded, none missing
// and no count at a limit. Each step takes constant time, and there are as many
// steps as flows and cells.
func (p *Peeler[K]) Peel(f *Family, b Filter, cells []Cell[K], found func(flow *Cell[K])) (flows int) {
	p.queue = p.queue[:0]
	for i := range cells {
		if cells[i].Flows == 1 {
			p.queue = append(p.queue, uint32(i))
		}
	}
	for len(p.queue) > 0 {
		i := p.queue[len(p.queue)-1]
		p.queue = p.queue[:len(p.queue)-1]
		h, pure := PureCell(f, b, cells, i)
		if !pure {
			continue
		}
		flow := cells[i]
		for t := range int(f.Tables) {
			at := f.Cell(h, t)
			c := &cells[at]
			c.Remove(&flow)
			if c.Flows == 1 {
				p.queue = append(p.queue, at)
			}
		}
		flows++
		found(&flow)
	}
	return flows
}
