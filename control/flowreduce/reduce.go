// Package flowreduce chooses which flows of a slot are stored one by one, and adds up
// the others. A slot of a large fabric has 100,000 flows, and most of them say
// nothing that their sums do not. It chooses over columns, so that records are made of
// the chosen flows alone. docs/store.md states the rule.
package flowreduce

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/paths"
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

// Names gives what sums are named after. Empty: a host outside the fabric, no job.
type Names struct {
	Host   func(model.Addr) string
	Switch func(model.NodeID) string
	Job    func(*model.FlowKey) string
}

// Counts account for flows of slots.
type Counts struct {
	Kept    uint64 `json:"kept"`    // records that are stored
	Reduced uint64 `json:"reduced"` // records that are only in sums
}

// Flow is a flow of a map, by its number there.
type Flow struct {
	Map    *paths.Map
	Number int
}

// Choice is the flows of a slot that are stored one by one.
type Choice struct {
	All  bool   // every flow of the slot is: the lists are empty
	Kept []Flow // in the order of their first records
	// Ended are flows of the slot before that are not in this one and were not stored,
	// in the order of their first records.
	Ended []Flow
}

// Reducer reduces slot after slot. One goroutine uses it.
type Reducer struct {
	cfg    Config
	names  Names
	sums   sums
	counts Counts

	parts []part // of the present slot
	last  []part // of the slot before
	known bool   // the slot before was reduced, and last has its flows

	// Memory that is used again.
	ranks       []rank
	kept, ended []Flow
	unsorted    []Flow
	places      []uint64
}

// New makes a Reducer.
func New(cfg Config, names Names) (*Reducer, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Reducer{cfg: cfg, names: names}, nil
}

// Counts returns the flows that were kept and reduced so far.
func (r *Reducer) Counts() Counts { return r.counts }

// Reduce chooses the flows of a slot that are stored one by one: each of its maps has a
// part of them, always the same part. Flows in must are chosen in any case. Sums of the
// others are appended to counters when their second has ended. The maps must not change
// before the call for the next slot has returned, and the result is valid until then.
func (r *Reducer) Reduce(at time.Time, slot []*paths.Map, must []Flow, counters []record.Counter) (Choice, []record.Counter) {
	flows := 0
	for _, m := range slot {
		flows += m.Flows()
	}
	if flows > 0 {
		counters = r.sums.advance(at, counters)
	}
	if flows <= r.cfg.Keep {
		r.counts.Kept += uint64(flows)
		r.known = false
		return Choice{All: true}, counters
	}
	r.load(slot)
	r.choose(must)
	r.listEnded(r.cfg.Keep / 4)
	r.kept = r.kept[:0]
	r.sums.begin(&r.names)
	for i := range r.parts {
		p := &r.parts[i]
		for n, s := range p.states {
			if s&kept != 0 {
				r.kept = append(r.kept, Flow{p.m, n})
			} else {
				r.sums.add(p.m, n, &p.totals[n])
			}
		}
		r.sums.addPaths(p.m)
	}
	r.sums.endSlot()
	r.counts.Kept += uint64(len(r.kept))
	r.counts.Reduced += uint64(flows - len(r.kept))
	r.sortByPlace(r.kept)
	r.sortByPlace(r.ended)
	r.parts, r.last, r.known = r.last, r.parts, true
	return Choice{Kept: r.kept, Ended: r.ended}, counters
}

// sortByPlace sorts flows of one slot by the places of their first records, which do not
// depend on the number of parts.
func (r *Reducer) sortByPlace(list []Flow) {
	r.places, r.unsorted = r.places[:0], append(r.unsorted[:0], list...)
	for i, f := range list {
		r.places = append(r.places, uint64(f.Map.Place(f.Number))<<32|uint64(i))
	}
	slices.Sort(r.places)
	for i, p := range r.places {
		list[i] = r.unsorted[uint32(p)]
	}
	clear(r.unsorted) // of maps
}

// choose sets which flows of a slot are kept: those that must be; then those that
// changed or have inexact counts, the largest first, up to half of what is left; then
// the largest.
func (r *Reducer) choose(must []Flow) {
	left := r.cfg.Keep
	for _, f := range must {
		for i := range r.parts {
			if p := &r.parts[i]; p.m == f.Map && p.states[f.Number]&kept == 0 {
				p.states[f.Number] |= kept
				left--
			}
		}
	}
	left -= r.keepLargest(left/2, unusual)
	r.keepLargest(left, notKept)
}
