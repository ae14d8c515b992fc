package flows

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
)

// memory accounts for the flowsets that are held, by switch. When there is too
// little of it, the switch that holds most loses first: a switch that floods
// loses its own flowsets before it holds more than any other.
type memory struct {
	limit, used model.Bytes
	holders     map[model.NodeID]*holder
	spare       [][]byte // buffers for staged chunks; counted in used
	cells4      spareCells[sketch.Key4]
	cells6      spareCells[sketch.Key6]
}

// holder is one switch's flowsets, open and emitted ones, the oldest first.
type holder struct {
	used model.Bytes
	sets []*Flowset
}

// maxSpare is how many buffers for staged chunks are kept for the next flowsets.
const maxSpare = 64

func newMemory(limit model.Bytes) memory {
	return memory{limit: limit, holders: map[model.NodeID]*holder{}}
}

// charge adds n bytes to what a flowset holds.
func (m *memory) charge(fs *Flowset, n model.Bytes) {
	h := m.holders[fs.Switch]
	if h == nil {
		h = &holder{}
		m.holders[fs.Switch] = h
	}
	if fs.held == 0 {
		h.sets = append(h.sets, fs)
	}
	fs.held += n
	h.used += n
	m.used += n
}

// free removes a flowset from the account.
func (m *memory) free(fs *Flowset) {
	h := m.holders[fs.Switch]
	if fs.held == 0 || h == nil {
		return
	}
	h.used -= fs.held
	m.used -= fs.held
	fs.held = 0
	if i := slices.Index(h.sets, fs); i >= 0 { // the oldest, in general
		h.sets = slices.Delete(h.sets, i, i+1)
	}
	if len(h.sets) == 0 && h.used == 0 {
		delete(m.holders, fs.Switch)
	}
}

// Release frees a flowset that was emitted and is not needed any longer: the
// caller has decoded it, or does not want it. Results of decoding stay valid.
func (a *Assembler) Release(fs *Flowset) {
	a.memory.free(fs)
	fs.body = nil
}

// reserve makes room for n more bytes of a switch's flowsets. It reports false if
// the switch itself holds the most, and nothing but keep, which is not dropped.
func (a *Assembler) reserve(sw model.NodeID, n model.Bytes, keep *Flowset) bool {
	m := &a.memory
	for m.used+n > m.limit {
		if k := len(m.spare); k > 0 {
			m.used -= model.Bytes(cap(m.spare[k-1]))
			m.spare[k-1] = nil
			m.spare = m.spare[:k-1]
			continue
		}
		victim := m.largest(sw, n)
		if victim == nil {
			return false
		}
		i := 0
		if victim.sets[0] == keep {
			i = 1
		}
		if i == len(victim.sets) {
			return false
		}
		a.drop(victim.sets[i])
	}
	return true
}

// largest returns the switch that holds most, if sw had n bytes more; nil if none
// holds anything. Of equal ones it is sw, then the one with the lowest id.
func (m *memory) largest(sw model.NodeID, n model.Bytes) (most *holder) {
	var id model.NodeID
	size := model.Bytes(0)
	if h := m.holders[sw]; h != nil {
		most, id, size = h, sw, h.used
	}
	size += n
	for other, h := range m.holders {
		if h.used > size || h.used == size && id != sw && other < id {
			most, id, size = h, other, h.used
		}
	}
	if most == nil || len(most.sets) == 0 {
		return nil
	}
	return most
}

// drop frees a flowset, open or emitted.
func (a *Assembler) drop(fs *Flowset) {
	a.stats.Dropped++
	if fs.open != nil {
		a.close(fs.open)
	}
	a.Release(fs)
}

// buffer returns an empty buffer for staged chunks.
func (m *memory) buffer() []byte {
	k := len(m.spare)
	if k == 0 {
		return nil
	}
	b := m.spare[k-1]
	m.spare = m.spare[:k-1]
	m.used -= model.Bytes(cap(b))
	return b[:0]
}

// recycle takes the buffer of a flowset's staged chunks back.
func (m *memory) recycle(p *pending) {
	if cap(p.staged) == 0 {
		return
	}
	n := model.Bytes(cap(p.staged))
	p.held -= n
	m.holders[p.Switch].used -= n
	if len(m.spare) < maxSpare {
		m.spare = append(m.spare, p.staged)
	} else {
		m.used -= n
	}
	p.staged = nil
}
