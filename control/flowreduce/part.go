package flowreduce

import (
	"github.com/weft-telemetry/weft/analyze/paths"
)

// part is the flows of one map of a slot, in columns by number.
type part struct {
	m      *paths.Map
	slot   int64 // of the map, which may be used for another one after a failure
	totals []paths.Totals
	keep   []bool // it is stored
	// odd: its counts are inexact, or its bytes changed since the slot before.
	odd  []bool
	seen []bool // it is in the slot after, too
}

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
		p.totals, p.keep, p.odd, p.seen = resized(p.totals, n), resized(p.keep, n), resized(p.odd, n), resized(p.seen, n)
		clear(p.keep)
		clear(p.seen)
		for k := range n {
			p.totals[k] = m.Totals(k)
		}
		if !r.known {
			for k := range n {
				p.odd[k] = !p.totals[k].Exact
			}
			continue
		}
		p.compare(&r.last[i], r.cfg.Factor)
	}
}

// compare finds flows that appeared, or whose bytes grew or shrank by a factor since the
// slot before.
func (p *part) compare(last *part, factor uint64) {
	for k := range p.totals {
		t := &p.totals[k]
		at := p.m.In(last.m, k)
		if at < 0 {
			p.odd[k] = true
			continue
		}
		last.seen[at] = true
		before := last.totals[at].Bytes
		small, large := min(before, t.Bytes), max(before, t.Bytes)
		p.odd[k] = !t.Exact || small < large && large/factor >= small
	}
}

// unusual reports whether a flow that is not kept is to be looked at before larger ones.
func (p *part) unusual(n int) bool { return p.odd[n] && !p.keep[n] }

func (p *part) notKept(n int) bool { return !p.keep[n] }

// unstored reports whether a flow is neither stored nor in the slot after.
func (p *part) unstored(n int) bool { return !p.keep[n] && !p.seen[n] }

// resized returns a slice of n elements, with the memory of another one if it is enough.
func resized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n, n+n/4)
}
