package loss

import (
	"cmp"
	"errors"
	"slices"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Config is what a Tracker goes by.
type Config struct {
	Intent *topo.Intent
	// MaxFlows bounds the flowlets that are followed at once. More are not
	// followed, and counted.
	MaxFlows int
}

// DefaultConfig follows a million flowlets.
func DefaultConfig(in *topo.Intent) Config { return Config{Intent: in, MaxFlows: 1 << 20} }

// Stats account for what a Tracker could not judge.
type Stats struct {
	Flowlets  uint64 // judged to their end
	Uncertain uint64 // ended with a counter that was not exact: no number was given
	Untracked uint64 // not followed for lack of room
}

// Tracker follows flowlets through successive maps. It needs packets to get
// from switch to switch, and clocks to agree, within one slot.
type Tracker struct {
	cfg   Config
	flows map[model.FlowKey]*flowlet
	links map[Segment]*Link
	stats Stats
	// since is from which slot on a switch has told everything, without a gap.
	since map[model.NodeID]int64
	last  int64 // slot that was observed last
}

// NewTracker makes a tracker that follows nothing yet.
func NewTracker(cfg Config) (*Tracker, error) {
	if cfg.Intent == nil {
		return nil, errors.New("loss: no intended routes, want a topo.Intent")
	}
	if cfg.MaxFlows < 1 {
		return nil, errors.New("loss: no flows to follow, want MaxFlows of at least 1")
	}
	return &Tracker{cfg: cfg, flows: map[model.FlowKey]*flowlet{}, links: map[Segment]*Link{}, since: map[model.NodeID]int64{}}, nil
}

// Stats returns the present counts.
func (t *Tracker) Stats() Stats { return t.stats }

// Observe takes the map of the next slot and returns the losses it shows, by
// flow and segment. A slot of which no map came must be given as an empty one.
func (t *Tracker) Observe(m *paths.Map) (events []Event) {
	routes := t.cfg.Intent.At(m.Start())
	t.noteCompleteSwitches(m, routes.Fabric())
	for key := range m.All() {
		if t.flows[key] != nil {
			continue
		}
		if len(t.flows) >= t.cfg.MaxFlows {
			t.stats.Untracked++
			continue
		}
		t.flows[key] = &flowlet{begin: m.Slot, exact: true}
	}
	for key, fl := range t.flows {
		seen := fl.addSlot(m, key, routes, t.since)
		if seen {
			events = fl.earlyLosses(events, key, m.Slot)
			continue
		}
		// The slot was silent: the flowlet is over.
		delete(t.flows, key)
		if !fl.exact {
			t.stats.Uncertain++
			continue
		}
		t.stats.Flowlets++
		events = fl.finalLosses(events, key, m.Slot)
		t.addToLinks(key, fl)
	}
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(a.Flow.Compare(b.Flow), cmp.Compare(a.From.Node, b.From.Node), cmp.Compare(a.From.Port, b.From.Port))
	})
	return events
}

// noteCompleteSwitches notes who tells everything in this slot.
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
