package flowfindings

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/control/api"
)

// rows keeps findings of one kind, in the order in which they began.
type rows[T any] struct {
	cfg   *Config
	key   func(*T) string // equal for the same finding at another time
	merge func(f, more *T)
	time  func(*T) *api.FindingTime
	flows func(*T) *api.AffectedFlows // nil: the findings have no flows

	list    []row[T]
	evicted uint64
	last    time.Time // end of the evicted row that ended last
}

type row[T any] struct {
	key     string
	finding T
}

// add extends the newest row of the same finding, or begins one.
func (r *rows[T]) add(f T) {
	key := r.key(&f)
	for i := len(r.list) - 1; i >= 0; i-- {
		if have := &r.list[i]; have.key == key {
			if r.time(&f).First.Sub(r.time(&have.finding).First) < r.cfg.MaxSpan {
				r.extend(&have.finding, &f)
				return
			}
			break
		}
	}
	if len(r.list) >= r.cfg.MaxRows {
		r.evict()
	}
	if r.flows != nil { // sorted, each once, and within the limit
		flows := r.flows(&f)
		all := *flows
		*flows = api.AffectedFlows{}
		mergeFlows(flows, &all, r.cfg.MaxFlows)
	}
	r.list = append(r.list, row[T]{key, f})
}

// evict removes the row that ended first.
func (r *rows[T]) evict() {
	oldest := 0
	for i := range r.list {
		if r.time(&r.list[i].finding).Last.Before(r.time(&r.list[oldest].finding).Last) {
			oldest = i
		}
	}
	if last := r.time(&r.list[oldest].finding).Last; last.After(r.last) {
		r.last = last
	}
	r.list = slices.Delete(r.list, oldest, oldest+1)
	r.evicted++
}

// extend adds a finding to an earlier one.
func (r *rows[T]) extend(f, more *T) {
	t, m := r.time(f), *r.time(more)
	if r.merge != nil {
		r.merge(f, more)
	}
	if !m.First.Before(t.Last) { // otherwise it is of a slot that is counted already
		t.Slots += m.Slots
	}
	if m.First.Before(t.First) {
		t.First = m.First
	}
	if m.Last.After(t.Last) {
		t.Last = m.Last
	}
	if r.flows != nil {
		mergeFlows(r.flows(f), r.flows(more), r.cfg.MaxFlows)
	}
}

// snapshot copies the rows, whose lists of flows it shares.
func (r *rows[T]) snapshot() *rows[T] {
	s := *r
	s.list = slices.Clone(r.list)
	return &s
}

// find returns copies of the rows that overlap a range, those of one finding merged.
func (r *rows[T]) find(from, to time.Time) []T {
	list := []T{}
	index := map[string]int{}
	for i := range r.list {
		f := r.list[i].finding
		if t := r.time(&f); !t.First.Before(to) || !t.Last.After(from) {
			continue
		}
		if at, found := index[r.list[i].key]; found {
			r.extend(&list[at], &f)
			continue
		}
		if r.flows != nil { // the caller may change its own
			r.flows(&f).Flows = slices.Clone(r.flows(&f).Flows)
		}
		index[r.list[i].key] = len(list)
		list = append(list, f)
	}
	return list
}

// omitted returns how many rows were evicted, if one of them ended in the range.
func (r *rows[T]) omitted(from time.Time) uint64 {
	if !r.last.After(from) {
		return 0
	}
	return r.evicted
}
