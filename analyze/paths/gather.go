package paths

import (
	"errors"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
)

// Gather puts decoded flowsets of all switches, in whatever order they come,
// into one map per slot and gives the maps out in the order of slots.
type Gather struct {
	length time.Duration
	wait   int64
	next   int64 // slot to give out next
	newest int64
	begun  bool
	open   map[int64]*Map
	// Late counts flowsets that came after their slot was given out, Odd those
	// with a slot of another length or too far ahead to be true.
	Late, Odd uint64
}

// far is how many slots ahead of the others a flowset may be: more is a broken
// clock, and would keep as many empty maps.
const far = 1 << 12

// NewGather makes a gatherer for slots of a length. A slot is given out once
// some switch has reported the one that comes wait slots later.
func NewGather(length time.Duration, wait int) (*Gather, error) {
	if length <= 0 || wait < 1 {
		return nil, errors.New("paths: slot length or wait is not positive")
	}
	return &Gather{length: length, wait: int64(wait), open: map[int64]*Map{}}, nil
}

// Add takes a decoded flowset.
func (g *Gather) Add(d *flows.Decoded) {
	slot := SlotOf(d)
	if !g.begun {
		g.begun, g.next, g.newest = true, slot, slot
	}
	switch {
	case d.Length != g.length || slot > g.newest+far:
		g.Odd++
		return
	case slot < g.next:
		g.Late++
		return
	}
	g.newest = max(g.newest, slot)
	m := g.open[slot]
	if m == nil {
		m = NewMap(slot, g.length)
		g.open[slot] = m
	}
	m.Add(d)
}

// Next returns the next map whose time has come, or nil. A slot of which
// nothing came gives an empty map.
func (g *Gather) Next() *Map {
	if !g.begun || g.newest < g.next+g.wait {
		return nil
	}
	return g.take()
}

// Flush returns the maps that are left, at the end, one after the other.
func (g *Gather) Flush() *Map {
	if !g.begun || g.next > g.newest {
		return nil
	}
	return g.take()
}

func (g *Gather) take() *Map {
	m := g.open[g.next]
	if m == nil {
		m = NewMap(g.next, g.length)
	}
	delete(g.open, g.next)
	g.next++
	return m
}
