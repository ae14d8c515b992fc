package flows

import (
	"slices"

	"github.com/weft-telemetry/weft/sketch"
)

// flowCounts holds one count, packets or bytes, of every flow of a flowset.
type flowCounts struct {
	values []uint64 // by flow
	source []uint32 // by flow: the cell that gave its count, inCore or noCell
	left   []uint64 // by cell: the residual that no flow explains
	usable []bool   // by cell: its equation holds; nil: all do

	// core holds the flows whose counts no cell gives by steps, in the order of
	// their ids. While it is not solved, left still includes their counts.
	core []uint32
}

// countPackets and countBytes solve one count into c, as far as single cells give
// it.
func (f *peeler[K]) countPackets(c *flowCounts, e *equations) {
	c.left = f.appendPackets(slices.Grow(c.left[:0], len(f.sums)))
	f.count(c, e, packetsFull)
}

func (f *peeler[K]) countBytes(c *flowCounts, e *equations) {
	c.left = f.appendBytes(slices.Grow(c.left[:0], len(f.sums)))
	f.count(c, e, bytesFull)
}

// count solves one count into c, whose left is the count of each cell. full is the
// flaw that makes it unusable.
func (f *peeler[K]) count(c *flowCounts, e *equations, full flaw) {
	n := e.flows()
	*c = flowCounts{values: zeroed(c.values, n), left: c.left}
	if n == len(f.found) && f.allPeeled() && f.intact() {
		// The order in which flows were peeled is one in which they can be
		// counted, cell by cell.
		c.source = f.source
		for flow, at := range f.source {
			v := c.left[at]
			c.values[flow] = v
			for _, cell := range e.cellsOf(uint32(flow)) {
				c.left[cell] -= v
			}
		}
		return
	}
	c.source, c.usable = make([]uint32, n), make([]bool, len(c.left))
	for i := range c.source {
		c.source[i] = noCell
	}
	for i := range c.usable {
		c.usable[i] = f.flawsOf(i)&(cellMissing|full) == 0 && f.emptied(i)
	}
	steps := e.peel(c.usable, nil)
	e.substitute(steps, c.left, c.values)
	for _, s := range steps {
		c.source[s.flow] = s.cell
	}
	for flow, at := range c.source {
		if at == noCell {
			c.core = append(c.core, uint32(flow))
		}
	}
}

// allPeeled reports whether every flow was found by peeling the table itself.
func (f *peeler[K]) allPeeled() bool { return !slices.Contains(f.source, noCell) }

// emptied reports whether all flows of a cell have been removed.
func (f *peeler[K]) emptied(cell int) bool {
	var empty K
	empty[len(empty)-1] = zeroFlows
	return f.left[cell] == empty
}

// portsOf returns the ports of the flows that peeling found; 0 for others, nil
// where cells have none.
func (f *peeler[K]) portsOf() []uint32 {
	if f.layout.Ports == 0 {
		return nil
	}
	ports := make([]uint32, len(f.found))
	if !f.allPeeled() {
		return ports
	}
	left := f.appendPorts(make([]uint32, 0, len(f.sums)))
	tables := int(f.family.Tables)
	for flow, at := range f.source {
		p := left[at]
		ports[flow] = p
		for _, c := range f.cells[flow*tables : (flow+1)*tables] {
			left[c] ^= p
		}
	}
	return ports
}

// equationsOf returns the equations over the flows found, followed by others
// that may have been counted without being inserted.
func (f *peeler[K]) equationsOf(others []K) *equations {
	e := &equations{tables: int(f.family.Tables), cells: f.cells}
	for i := range others {
		var cells [sketch.MaxTables]uint32
		f.family.CellsOf(sketch.HashOf(&f.family, &others[i]), &cells)
		e.cells = append(e.cells, cells[:e.tables]...)
	}
	return e
}
