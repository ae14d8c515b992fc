package paths

import (
	"iter"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/internal/flowtable"
	"github.com/weft-telemetry/weft/analyze/internal/routecache"
	"github.com/weft-telemetry/weft/internal/hugepages"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Sighting is a flow at one switch in one slot.
type Sighting struct {
	Packets uint64
	Bytes   uint64
	Switch  model.NodeID
	In, Out model.PortID // 0: not known
	Exact   bool         // the counters are proven
	rank    uint16       // in the order in which the flow's sightings were added
}

// Added returns the place of a sighting among those of its flow, in the order in which
// they were added.
func (s *Sighting) Added() int { return int(s.rank) }

// Presence is what is known about a flow at a switch.
type Presence uint8

// Presences. Only Seen and Absent are facts.
const (
	Unknown Presence = iota // no flowset of this slot, or one that is not conclusive
	Seen
	Absent
)

// Map holds the flow records of all switches in one slot, or of a part of the flows.
//
// Slots of different switches belong together when they have the same index,
// by each switch's own clock. With clocks up to half a slot apart that is the
// same slot; packets near its edges may still be counted in the one before or
// after at the next switch.
//
// Flows have numbers, in the order in which they were first added. Columns are indexed by
// them: a flow's sightings are one piece of an array that has those of all flows, and lie
// in the order of its path after OrderPaths.
type Map struct {
	*Reports

	ids     []uint32 // of the flows in the workspace's index
	byID    []uint32 // flows: one is at its id; where ids does not agree there is none
	hashes  []uint64 // of the keys
	places  []uint32 // of the flows' first records among all records of the slot
	starts  []uint32 // of the flows' sightings, and the end of the last one's
	seen    []Sighting
	shapes  []shape
	numbers []uint32 // of the flows' paths, of an edition
	edition *PathEdition

	records uint32 // added so far
	joined  bool
	routes  *topo.Routes // that paths are ordered by
	loops   []flowLoop   // ascending by flow
	work    *Workspace
}

// Workspace is the keys of maps. Maps of successive slots may share one, if each is joined
// before the next is begun: most flows are in several slots, and have one key and one id in
// all of them. The zero value is ready.
type Workspace struct {
	index flowIndex
	paths knownPaths
	*Scratch
}

// UseScratch makes the maps of a workspace use other memory from now on. A map must not have
// records that are not joined.
func (w *Workspace) UseScratch(s *Scratch) { w.Scratch = s }

// Scratch is memory that maps need while they are made and examined, and that has nothing of
// theirs afterwards. Workspaces whose maps are worked on one after the other may share
// one: it is then in the CPU's cache, and has the answers of routes that others have asked for.
// The zero value is ready.
type Scratch struct {
	stage stage
	order pathOrder
	cache routecache.Cache
}

// shape is what is known about a flow's path from the ports of its sightings.
type shape uint8

const (
	chain     shape = 1 << iota // ports lead from each sighting to the next: no routes are needed to order them
	delivered                   // the last one's port leads to a host
	looped                      // a port leads back to an earlier one
	several                     // see OnSeveralPaths
)

// flowLoop is the switches of a loop of one flow.
type flowLoop struct {
	flow     uint32
	switches []model.NodeID
}

// NewMap returns the map of a slot without reports.
func NewMap(slot int64, length time.Duration) *Map {
	return NewPart(NewReports(slot, length), &Workspace{})
}

// NewPart returns a map without flows that shares the reports of a slot with others.
func NewPart(r *Reports, w *Workspace) *Map {
	if w.Scratch == nil {
		w.Scratch = new(Scratch)
	}
	m := &Map{Reports: r, work: w}
	m.beginPaths()
	return m
}

// Reset starts another slot with the same memory.
func (m *Map) Reset(r *Reports) {
	m.Reports, m.routes, m.records, m.joined = r, nil, 0, false
	m.work.index.release(m.ids)
	m.work.stage.reset()
	m.ids, m.hashes, m.places, m.starts, m.seen, m.shapes = m.ids[:0], m.hashes[:0], m.places[:0], m.starts[:0], m.seen[:0], m.shapes[:0]
	clear(m.loops)
	m.loops = m.loops[:0]
	m.numbers = m.numbers[:0]
	m.beginPaths()
}

// RouteCache returns answers of routes that all analyses of the map use: one of them
// finds what another has asked for. It is valid until the next call.
func (m *Map) RouteCache(r *topo.Routes) *routecache.Cache {
	m.work.cache.Use(r)
	return &m.work.cache
}

// SlotAt returns the index of a slot of a switch: its start divided by its
// length, rounded, so that clocks may be up to half a slot apart.
func SlotAt(start model.Time, length time.Duration) int64 {
	n := int64(length)
	t := int64(start) + n/2
	if t < 0 {
		t -= n - 1 // division rounds towards zero; slots do not
	}
	return t / n
}

// SlotOf returns the index of a flowset's slot.
func SlotOf(d *flows.Decoded) int64 { return SlotAt(d.Start, d.Length) }

// Hash returns the hash by which maps find a flow.
func Hash(key *model.FlowKey) uint64 { return flowtable.Hash(key) }

// resized returns a slice of n elements, with the memory of another one if it is enough.
func resized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return hugepages.Make[T](n + n/16)[:n] // slots of one fabric differ little
}

// Flows returns the number of flows seen anywhere.
func (m *Map) Flows() int { return len(m.ids) }

// Key returns the key of a flow by number.
func (m *Map) Key(flow int) *model.FlowKey { return m.work.index.table.Key(m.ids[flow]) }

// Place returns the place of a flow's first record among all records of the slot. Flows
// are ascending by it, in a part of the flows too.
func (m *Map) Place(flow int) uint32 { return m.places[flow] }

// Hash returns the hash of a flow's key.
func (m *Map) Hash(flow int) uint64 { return m.hashes[flow] }

// Sightings returns the sightings of a flow. They belong to the map.
func (m *Map) Sightings(flow int) []Sighting {
	m.join()
	return m.seen[m.starts[flow]:m.starts[flow+1]]
}

// Find returns the number of a flow, or -1.
func (m *Map) Find(key *model.FlowKey, hash uint64) int {
	m.join()
	if id, ok := m.work.index.table.Find(key, hash); ok {
		if n, ok := m.withID(id); ok {
			return int(n)
		}
	}
	return -1
}

// Largest returns the sighting of a flow with most packets, of equal ones the one that was
// added first.
func (m *Map) Largest(flow int) *Sighting {
	list := m.Sightings(flow)
	best := &list[0]
	for i := range list {
		if s := &list[i]; s.Packets > best.Packets || s.Packets == best.Packets && s.rank < best.rank {
			best = s
		}
	}
	return best
}

// Totals are the counters of a flow in a slot.
type Totals struct {
	Packets, Bytes uint64 // the most that a switch counted
	Exact          bool   // every counter is
}

// Totals returns the counters of a flow.
func (m *Map) Totals(flow int) Totals {
	t := Totals{Exact: true}
	list := m.Sightings(flow)
	for i := range list {
		s := &list[i]
		t.Packets, t.Bytes, t.Exact = max(t.Packets, s.Packets), max(t.Bytes, s.Bytes), t.Exact && s.Exact
	}
	return t
}

// All iterates over the flows seen anywhere, with their sightings, in the order in which
// they were added. The sightings belong to the map.
func (m *Map) All() iter.Seq2[model.FlowKey, []Sighting] {
	return func(yield func(model.FlowKey, []Sighting) bool) {
		for i := range m.Flows() {
			if !yield(*m.Key(i), m.Sightings(i)) {
				return
			}
		}
	}
}

// At returns the sighting of a flow at a switch, if any.
func (m *Map) At(sw model.NodeID, key model.FlowKey) (Sighting, Presence) {
	return m.FlowAt(m.Find(&key, flowtable.Hash(&key)), sw, &key)
}

// FlowAt is At of a flow by number; -1: the map does not have it.
func (m *Map) FlowAt(flow int, sw model.NodeID, key *model.FlowKey) (Sighting, Presence) {
	if flow >= 0 {
		list := m.Sightings(flow)
		for i := range list {
			if list[i].Switch == sw {
				return list[i], Seen
			}
		}
	}
	return Sighting{Switch: sw}, m.withoutRecord(sw, key)
}
