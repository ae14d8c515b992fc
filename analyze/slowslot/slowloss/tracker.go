package slowloss

import (
	"cmp"
	"errors"
	"slices"

	paths "github.com/weft-telemetry/weft/analyze/slowslot/slowpaths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Tracker tracks flowlets through successive maps. It needs packets to get from
// switch to switch, and clocks to agree, within one slot.
type Tracker struct {
	cfg   Config
	flows map[model.FlowKey]*flowlet
	links map[Segment]*Link
	stats Stats
	// since is the slot from which on a switch has reported everything, without a gap.
	since map[model.NodeID]int64
	last  int64                  // slot that was observed last
	left  map[model.FlowKey]bool // not tracked in the slot before
}

// NewTracker returns a tracker without flowlets.
func NewTracker(cfg Config) (*Tracker, error) {
	if cfg.Intent == nil {
		return nil, errors.New("loss: no intended routes, want a topo.Intent")
	}
	if cfg.MaxFlows < 1 {
		return nil, errors.New("loss: max flows below 1, want at least 1")
	}
	return &Tracker{
		cfg: cfg, flows: map[model.FlowKey]*flowlet{}, links: map[Segment]*Link{},
		since: map[model.NodeID]int64{},
	}, nil
}

// Stats returns the current counts.
func (t *Tracker) Stats() Stats { return t.stats }

// Observe takes the map of the next slot and returns the losses it shows, by
// flow and segment. A slot without a map must be given as an empty one.
func (t *Tracker) Observe(m *paths.Map) (events []Event) {
	routes := t.cfg.Intent.At(m.Start())
	t.noteCompleteSwitches(m, routes.Fabric())
	left := map[model.FlowKey]bool{}
	for key, sightings := range m.All() {
		if t.flows[key] != nil {
			continue
		}
		if len(t.flows) >= t.cfg.MaxFlows {
			t.stats.Untracked++
			left[key] = true
			continue
		}
		// Packets of a flow that may have been there before may be in flight.
		restarted := t.left[key]
		for _, s := range sightings {
			restarted = restarted || !wholeBefore(t.since, s.Switch, m.Slot)
		}
		t.flows[key] = &flowlet{firstSlot: m.Slot, exact: true, restarted: restarted}
		if restarted {
			t.stats.Restarted++
		}
	}
	t.left = left
	for key, fl := range t.flows {
		seen := fl.addSlot(m, key, routes, t.since, &t.stats)
		if seen {
			events = fl.earlyLosses(events, key, m.Slot)
			continue
		}
		// The slot was silent: the flowlet has ended.
		delete(t.flows, key)
		if !fl.exact {
			t.stats.Uncertain++
			continue
		}
		t.stats.Flowlets++
		events = fl.finalLosses(events, key, m.Slot, routes.Fabric())
		t.addToLinks(key, fl, m.Slot)
	}
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(a.Flow.Compare(b.Flow), cmp.Compare(a.From.Node, b.From.Node),
			cmp.Compare(a.From.Port, b.From.Port))
	})
	return events
}

// noteCompleteSwitches records which switches reported everything in this slot.
func (t *Tracker) noteCompleteSwitches(m *paths.Map, f *topo.Fabric) {
	if m.Slot != t.last+1 {
		clear(t.since)
	}
	t.last = m.Slot
	for _, sw := range f.Switches() {
		if !m.Complete(sw) {
			delete(t.since, sw)
		} else if _, known := t.since[sw]; !known {
			t.since[sw] = m.Slot
		}
	}
}

// wholeBefore reports whether a switch has reported everything since before a slot. There
// is nothing before slot 0.
func wholeBefore(since map[model.NodeID]int64, sw model.NodeID, slot int64) bool {
	from, whole := since[sw]
	return whole && (from < slot || from == 0)
}
