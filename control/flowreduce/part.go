package flowreduce

import (
	"github.com/weft-telemetry/weft/analyze/paths"
)

// part is the flows of one map of a slot, in columns by number.
type part struct {
	m       *paths.Map
	slot    int64 // of the map, which may be used for another one after a failure
	totals  []paths.Totals
	classes []uint16 // sizeClass of the bytes
	states  []state
}

// state is what is known about a flow.
type state uint8

const (
	kept state = 1 << iota // it is stored
	odd                    // its counts are inexact, or its bytes changed since the slot before
	seen                   // it is in the slot after, too
)

// load begins a slot: it makes the columns of its maps, and finds its flows in the slot
// before.
func (r *Reducer) load(slot []*paths.Map) {
	r.known = r.known && len(r.last) == len(slot)
	for i := range r.last {
		r.known = r.known && r.last[i].m.Slot == r.last[i].slot && r.last[i].m != slot[i]
	}
	if len(r.parts) != len(slot) {
		r.parts = make([]part, len(slot))
	}
	for i, m := range slot {
		p := &r.parts[i]
		n := m.Flows()
		p.m, p.slot = m, m.Slot
		p.totals, p.classes, p.states = resized(p.totals, n), resized(p.classes, n), resized(p.states, n)
		for k := range n {
			t := m.Totals(k)
			p.totals[k], p.classes[k], p.states[k] = t, uint16(sizeClass(t.Bytes)), 0
			if !t.Exact {
				p.states[k] = odd
			}
		}
		if r.known {
			p.compare(&r.last[i], r.cfg.Factor)
		}
	}
}

// compare finds flows that appeared, or whose bytes grew or shrank by a factor since the
// slot before.
func (p *part) compare(last *part, factor uint64) {
	for k := range p.totals {
		at := p.m.In(last.m, k)
		if at < 0 {
			p.states[k] |= odd
			continue
		}
		last.states[at] |= seen
		now, before := p.totals[k].Bytes, last.totals[at].Bytes
		if small, large := min(before, now), max(before, now); small < large && large/factor >= small {
			p.states[k] |= odd
		}
	}
}

// choice says which flows may be chosen: those that have all states of some and none of others.
type choice struct{ with, without state }

var (
	unusual  = choice{with: odd, without: kept} // to be looked at before larger ones
	notKept  = choice{without: kept}
	unstored = choice{without: kept | seen}
)

func (c choice) includes(s state) bool { return s&(c.with|c.without) == c.with }

// resized returns a slice of n elements, with the memory of another one if it is enough.
func resized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n, n+n/4)
}
