package flows

import (
	"container/list"
	"unsafe"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// pending is a flowset that is not complete yet. Its table is allocated when a
// part of it has arrived; until then its chunks are staged as they came, so that
// a header alone costs nothing.
type pending struct {
	*Flowset
	source        *openSets
	cells, filter bitmap      // units that arrived
	size          model.Bytes // of the whole table
	deadline      model.Time
	staged        []byte // chunks, each with its checksum

	element *list.Element // in Assembler.byAge
}

const (
	// fillShare is the part of a table, by its size, that must have arrived before it
	// is allocated: at most fillShare times the memory of the data received.
	fillShare = 8
	// smallTable is the size up to which a table is allocated at once.
	smallTable = 32 * model.KiB
	// pendingSize is what an open flowset takes without its table.
	pendingSize = model.Bytes(unsafe.Sizeof(pending{}) + unsafe.Sizeof(Flowset{}) + unsafe.Sizeof(list.Element{}) + 64)
)

// sizeOf estimates the memory that an open flowset takes in total, before a
// byte of it is allocated.
func sizeOf(h *flowset.Header) model.Bytes {
	cell := model.Bytes(unsafe.Sizeof(cellSum[sketch.Key4]{}))
	if h.Layout.Key == model.KeyLen6 {
		cell = model.Bytes(unsafe.Sizeof(cellSum[sketch.Key6]{}))
	}
	if h.Layout.Packets > 4 {
		cell += 4
	}
	cell++ // flaws
	return model.Bytes(h.Units(flowset.Cells))*cell*9/8 + model.Bytes(h.Units(flowset.Filter))*9/8 + model.Bytes(unsafe.Sizeof(sketch.Family{}))
}

// mayFill reports whether, with another chunk, enough has arrived to allocate the
// table.
func (p *pending) mayFill(c *flowset.Chunk) bool {
	return p.size <= smallTable || model.Bytes(len(p.staged)+len(c.Data))*fillShare >= p.size
}

// stageChunk keeps a chunk until the table is allocated.
func (a *Assembler) stageChunk(p *pending, c *flowset.Chunk) error {
	if p.staged == nil {
		if b := a.memory.buffer(); b != nil {
			p.staged = b
			a.memory.charge(p.Flowset, model.Bytes(cap(b)))
		}
	}
	need := len(p.staged) + flowset.Overhead + len(c.Data)
	if need > cap(p.staged) {
		grown := model.Bytes(2*need - cap(p.staged))
		if !a.reserve(p.Switch, grown, p.Flowset) {
			return a.refuse(&p.Header)
		}
		b := make([]byte, len(p.staged), 2*need)
		copy(b, p.staged)
		p.staged = b
		a.memory.charge(p.Flowset, grown)
	}
	p.staged = c.AppendTo(p.staged)
	a.stats.Chunks++
	return nil
}

// fill allocates the table and stores the staged chunks in it.
func (a *Assembler) fill(p *pending) error {
	if !a.reserve(p.Switch, p.size, p.Flowset) {
		return a.refuse(&p.Header)
	}
	a.memory.charge(p.Flowset, p.size)
	p.allocate(&a.memory)
	p.cells, p.filter = newBitmap(p.MissingCells), newBitmap(p.MissingFilter)
	var c flowset.Chunk
	for b := p.staged; len(b) > 0; {
		n, err := c.Parse(b)
		if err != nil {
			panic("unreachable: the chunk was parsed before: " + err.Error())
		}
		if p.addUnits(&c) == 0 {
			a.stats.Repeated++
		}
		b = b[n:]
	}
	a.memory.recycle(p)
	return nil
}

// addUnits stores a chunk's units and returns how many were new.
func (p *pending) addUnits(c *flowset.Chunk) (fresh uint32) {
	if c.Section == flowset.Filter {
		if fresh = p.filter.setRange(c.First, uint32(c.Len())); fresh > 0 {
			p.body.storeFilter(c)
		}
		p.MissingFilter -= fresh
		return fresh
	}
	if fresh = p.cells.setRange(c.First, uint32(c.Len())); fresh > 0 {
		p.body.storeCells(c)
	}
	p.MissingCells -= fresh
	return fresh
}
