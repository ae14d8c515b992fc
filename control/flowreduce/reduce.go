// Package flowreduce chooses which flows of a slot are stored one by one, and adds up
// the others. A slot of a large fabric has 100,000 flows, and most of them say
// nothing that their sums do not. docs/store.md states the rule.
package flowreduce

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Config is the configuration of a Reducer.
type Config struct {
	// Keep is the number of flows of a slot that are stored. A slot with no more is
	// stored completely. Flows that must be kept may exceed it.
	Keep int
	// Factor is by how much a flow's bytes must grow or shrink from one slot to the
	// next to count as changed.
	Factor uint64
}

// DefaultConfig stores every flow of a fabric of a few racks.
func DefaultConfig() Config { return Config{Keep: 10_000, Factor: 4} }

// Check returns an error for the first invalid field.
func (c Config) Check() error {
	switch {
	case c.Keep < 1:
		return fmt.Errorf("flow reduction: keep %d flows, want at least 1", c.Keep)
	case c.Factor < 2:
		return fmt.Errorf("flow reduction: factor %d, want at least 2", c.Factor)
	}
	return nil
}

// Counts account for flows of slots.
type Counts struct {
	Kept    uint64 `json:"kept"`    // records that are stored
	Reduced uint64 `json:"reduced"` // records that are only in sums
}

// Reducer reduces slot after slot. One goroutine uses it.
type Reducer struct {
	cfg    Config
	jobOf  func(*model.FlowKey) string // empty: none
	sums   sums
	counts Counts

	last previous // the last slot, if it was reduced

	// Memory that is used again.
	ranks []rank
	keep  []bool
}

// New makes a Reducer; jobOf names the job of a flow.
func New(cfg Config, jobOf func(*model.FlowKey) string) (*Reducer, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Reducer{cfg: cfg, jobOf: jobOf}, nil
}

// Counts returns the flows that were kept and reduced so far.
func (r *Reducer) Counts() Counts { return r.counts }

// rank is a flow in the order of size.
type rank struct {
	bytes uint64
	at    int32
}

// Reduce removes the flows of a slot that need not be stored one by one, in place,
// and appends flows of the slot before that ended and were not stored. Sums of all
// removed flows are appended to counters when their second has ended. must reports
// whether a flow is to be kept in any case. Records are of one slot, each flow once;
// their paths must not change before the call for the next slot has returned.
func (r *Reducer) Reduce(slot []record.FlowSlot, counters []record.Counter, must func(*record.FlowSlot) bool) ([]record.FlowSlot, []record.Counter) {
	if len(slot) > 0 {
		counters = r.sums.advance(slot[0].Time, counters)
	}
	if len(slot) <= r.cfg.Keep {
		r.counts.Kept += uint64(len(slot))
		r.last.forget()
		return slot, counters
	}
	r.choose(slot, must)
	r.last.findEnded(slot, r.cfg.Keep/4)
	ended := r.last.ended
	r.last.remember(slot, r.keep)
	kept := slot[:0]
	for i := range slot {
		f := &slot[i]
		if !r.keep[i] {
			r.counts.Reduced++
			r.sums.add(f, r.jobOf(&f.Flow))
			continue
		}
		f.Partial = true
		kept = append(kept, *f)
	}
	r.counts.Kept += uint64(len(kept))
	// They were counted and added as reduced in their own slot.
	for i := range ended {
		ended[i].Partial = true
		kept = append(kept, ended[i])
	}
	return kept, counters
}

// choose sets which flows of a slot are kept: those that must be; then those that
// changed or have inexact counts, the largest first, up to half of what is left; then
// the largest.
func (r *Reducer) choose(slot []record.FlowSlot, must func(*record.FlowSlot) bool) {
	r.keep = append(r.keep[:0], make([]bool, len(slot))...)
	left := r.cfg.Keep
	for i := range slot {
		if must(&slot[i]) {
			r.keep[i] = true
			left--
		}
	}
	r.ranks = r.ranks[:0]
	for i := range slot {
		if f := &slot[i]; !r.keep[i] && (!f.Exact || r.last.changed(f, r.cfg.Factor)) {
			r.ranks = append(r.ranks, rank{f.Bytes, int32(i)})
		}
	}
	left -= r.keepLargest(slot, left/2)
	r.ranks = r.ranks[:0]
	for i := range slot {
		if !r.keep[i] {
			r.ranks = append(r.ranks, rank{slot[i].Bytes, int32(i)})
		}
	}
	r.keepLargest(slot, left)
}

// keepLargest keeps the n largest of ranks and returns their number.
func (r *Reducer) keepLargest(slot []record.FlowSlot, n int) int {
	n = max(min(n, len(r.ranks)), 0)
	selectLargest(r.ranks, n, func(a, b rank) bool {
		if a.bytes != b.bytes {
			return a.bytes > b.bytes
		}
		return slot[a.at].Flow.Compare(slot[b.at].Flow) < 0
	})
	for _, f := range r.ranks[:n] {
		r.keep[f.at] = true
	}
	return n
}

// selectLargest moves the n first of an order to the front, in any order among them.
func selectLargest(list []rank, n int, before func(a, b rank) bool) {
	for n > 0 && n < len(list) {
		// The middle one splits sorted input in half.
		last := len(list) - 1
		list[len(list)/2], list[last] = list[last], list[len(list)/2]
		split := 0
		for i := range last {
			if before(list[i], list[last]) {
				list[i], list[split] = list[split], list[i]
				split++
			}
		}
		list[split], list[last] = list[last], list[split]
		if split >= n {
			list = list[:split]
		} else {
			list, n = list[split+1:], n-split-1
		}
	}
}
