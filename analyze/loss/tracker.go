package loss

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/analyze/internal/flowtable"
	"github.com/weft-telemetry/weft/analyze/internal/routecache"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Config configures a Tracker.
type Config struct {
	Intent *topo.Intent
	// MaxFlows bounds the flowlets that are tracked at once. Further ones are
	// counted, not tracked.
	MaxFlows int
	// Ports are those of the fabric, if others use them too; nil: its own.
	Ports *paths.Ports
}

// DefaultConfig tracks up to a million flowlets.
func DefaultConfig(in *topo.Intent) Config { return Config{Intent: in, MaxFlows: 1 << 20} }

// Stats account for the flowlets that a Tracker evaluated, and those it could not.
type Stats struct {
	Flowlets  uint64 // evaluated to their end
	Uncertain uint64 // ended with a counter that was not exact: its losses since are not reported
	Untracked uint64 // beyond Config.MaxFlows
	Restarted uint64 // begun, or begun again, when packets may have been in flight
	Late      uint64 // packets that seemed lost and arrived later than in the next slot
}

// Tracker tracks flowlets through successive maps. It needs packets to get from
// switch to switch, and clocks to agree, within one slot.
type Tracker struct {
	cfg   Config
	ports *paths.Ports
	cache *routecache.Cache // of the slot that is observed
	stats Stats
	links links
	// since is the slot from which on a switch has reported everything, without a gap.
	since  map[model.NodeID]int64
	last   int64 // slot that was observed last
	before int64 // the one before, while a slot is observed

	flows        flowtable.Table // with a flowlet
	flowlets     []flowlet       // by number
	active       []uint32        // the numbers
	hops         arena[hop]
	ends         arena[slotEnd]
	deficits     []deficit
	freeDeficits []uint32 // as hop.deficit

	// left are the hashes of the flows that were not tracked in the slot before, sorted.
	left, leftNow []uint64

	// Of the flowlet that is evaluated, by hop: the packets that the hops after it
	// counted, and the number of these hops.
	after     []uint64
	newest    []uint64 // of after, those of the newest slot; for restarted flowlets only
	followers []uint16

	noUsual bool // continueUsual does nothing; for tests
}

// NewTracker returns a tracker without flowlets.
func NewTracker(cfg Config) (*Tracker, error) {
	if cfg.Intent == nil {
		return nil, errors.New("loss: no intended routes, want a topo.Intent")
	}
	if cfg.MaxFlows < 1 {
		return nil, errors.New("loss: max flows below 1, want at least 1")
	}
	t := &Tracker{
		cfg: cfg, ports: cfg.Ports, since: map[model.NodeID]int64{},
		// A path in a Clos of five stages has five switches.
		hops: arena[hop]{least: 5}, ends: arena[slotEnd]{least: leastEnds},
	}
	if t.ports == nil {
		t.ports = paths.NewPorts(cfg.Intent.At(0).Fabric())
	}
	return t, nil
}

// Stats returns the current counts.
func (t *Tracker) Stats() Stats { return t.stats }

// Observe takes the map of the next slot and returns the losses it shows, by
// flow and segment. A slot without a map must be given as an empty one.
func (t *Tracker) Observe(m *paths.Map) []Event {
	end := uint32(math.MaxUint32)
	if room := t.cfg.MaxFlows - t.flows.Len(); room < m.Flows() {
		if places := t.NewFlows(m); len(places) > room {
			end = places[room]
		}
	}
	events := t.ObservePart(m, end)
	SortEvents(events)
	return events
}

// NewFlows returns the places of the flows of a map that have no flowlet, ascending: they
// need one if there is capacity.
func (t *Tracker) NewFlows(m *paths.Map) (places []uint32) {
	for i := range m.Flows() {
		if _, known := t.flows.Find(m.Key(i), m.Hash(i)); !known {
			places = append(places, m.Place(i))
		}
	}
	return places
}

// Tracked returns the number of flowlets.
func (t *Tracker) Tracked() int { return t.flows.Len() }

// ObservePart is Observe of a part of the flows, of which those without a flowlet get one
// if their place is before end. The events are not sorted.
func (t *Tracker) ObservePart(m *paths.Map, end uint32) (events []Event) {
	routes := t.cfg.Intent.At(m.Start())
	t.cache = m.RouteCache(routes)
	t.before = t.last
	t.noteCompleteSwitches(m, routes.Fabric())
	m.OrderPaths(t.ports, routes)
	t.left, t.leftNow = t.leftNow, t.left[:0]
	slices.Sort(t.left)
	for i := range m.Flows() {
		key := m.Key(i)
		n, known := t.flows.FindHinted(key, m.Hash(i), m.ID(i))
		if !known {
			if m.Place(i) >= end {
				t.stats.Untracked++
				t.leftNow = append(t.leftNow, m.Hash(i))
				continue
			}
			n, _ = t.flows.FindOrAdd(key, m.Hash(i))
			t.begin(n, m.Slot)
			t.active = append(t.active, n)
		}
		fl := &t.flowlets[n]
		fl.lastSlot = m.Slot
		path := m.Path(i, t.ports, routes).Hops
		if !known && !t.silentBefore(path, m.Hash(i), m.Slot) {
			t.restart(fl, m.Slot)
		}
		if known && t.continueUsual(fl, m, i, path) {
			continue
		}
		t.addSlot(fl, m, i, key, path)
		events = t.earlyLosses(events, fl, key, m.Slot)
	}
	kept := t.active[:0]
	for _, n := range t.active {
		if t.flowlets[n].lastSlot == m.Slot {
			kept = append(kept, n)
		} else {
			events = t.end(events, n, m)
		}
	}
	t.active = kept
	return events
}

// begin makes a flowlet.
func (t *Tracker) begin(n uint32, slot int64) {
	if int(n) >= len(t.flowlets) {
		t.flowlets = append(t.flowlets, make([]flowlet, t.flows.Numbers()-len(t.flowlets))...)
	}
	t.flowlets[n] = flowlet{firstSlot: slot, exact: true, hops: t.hops.alloc(0)}
}

// end ends a flowlet after a silent slot.
func (t *Tracker) end(events []Event, n uint32, m *paths.Map) []Event {
	fl, key := &t.flowlets[n], *t.flows.Key(n)
	t.addSlot(fl, m, -1, &key, nil)
	if fl.exact {
		t.stats.Flowlets++
		events = t.finalLosses(events, fl, &key, m.Slot)
		t.addToLinks(&key, fl, m.Slot)
	} else {
		t.stats.Uncertain++
	}
	list := t.hopsOf(fl)
	for i := range list {
		t.freeDeficit(&list[i])
	}
	t.hops.release(fl.hops, fl.class)
	t.flows.Delete(n)
	return events
}

// SortEvents sorts the events of a slot by flow and segment.
func SortEvents(events []Event) {
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(a.Flow.Compare(b.Flow), cmp.Compare(a.From.Node, b.From.Node),
			cmp.Compare(a.From.Port, b.From.Port))
	})
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
