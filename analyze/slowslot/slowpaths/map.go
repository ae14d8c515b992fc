package slowpaths

import (
	"iter"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
)

// Sighting is a flow at one switch in one slot.
type Sighting struct {
	Switch  model.NodeID
	In, Out model.PortID // 0: not known
	Packets uint64
	Bytes   uint64
	Exact   bool // the counters are proven
}

// Presence is what is known about a flow at a switch.
type Presence uint8

// Presences. Only Seen and Absent are facts.
const (
	Unknown Presence = iota // no flowset of this slot, or one that is not conclusive
	Seen
	Absent
)

// Map holds the flow records of all switches in one slot.
//
// Slots of different switches belong together when they have the same index,
// by each switch's own clock. With clocks up to half a slot apart that is the
// same slot; packets near its edges may still be counted in the one before or
// after at the next switch.
type Map struct {
	Slot   int64 // index: the start divided by the length
	Length time.Duration

	sets  map[model.NodeID][]*flows.Decoded
	seen  map[model.FlowKey][]Sighting
	order []model.FlowKey // of seen, as they were added first
	lost  map[family]bool // flowsets that a switch usually sends did not all arrive
}

// family is the flows of one address family at a switch.
type family struct {
	sw model.NodeID
	v6 bool
}

// NewMap returns the map of a slot without reports.
func NewMap(slot int64, length time.Duration) *Map {
	return &Map{
		Slot: slot, Length: length, sets: map[model.NodeID][]*flows.Decoded{},
		seen: map[model.FlowKey][]Sighting{}, lost: map[family]bool{},
	}
}

// AddFlowset adds a decoded flowset to the map. A switch may report several for
// one slot: one per port or per address family.
func (m *Map) AddFlowset(d *flows.Decoded) {
	m.sets[d.Switch] = append(m.sets[d.Switch], d)
	for i := range d.Records {
		r := &d.Records[i]
		s := Sighting{
			Switch: d.Switch, In: r.In, Out: r.Out, Packets: r.Packets, Bytes: r.Bytes,
			Exact: r.Grade == flows.Exact && !m.lost[family{d.Switch, d.V6}],
		}
		if m.seen[r.Key] == nil {
			m.order = append(m.order, r.Key)
		}
		m.seen[r.Key] = merge(m.seen[r.Key], s)
	}
}

// MarkLost says that a flowset of a switch did not arrive. What the others do not
// have is then not absent, and their counters may lack packets. Call it before
// AddFlowset.
func (m *Map) MarkLost(sw model.NodeID, v6 bool) { m.lost[family{sw, v6}] = true }

// merge adds a sighting to those of its flow. Two at one switch come from two
// of its ports: the counters add up, and the first one's ports are kept, as
// within one flowset.
func merge(list []Sighting, s Sighting) []Sighting {
	for i := range list {
		if have := &list[i]; have.Switch == s.Switch {
			have.Packets += s.Packets
			have.Bytes += s.Bytes
			have.Exact = have.Exact && s.Exact
			return list
		}
	}
	return append(list, s)
}

// Start returns the start of the slot on a clock without offset.
func (m *Map) Start() model.Time { return model.Time(m.Slot * int64(m.Length)) }

// End returns the end of the slot on a clock without offset.
func (m *Map) End() model.Time { return m.Start().Add(m.Length) }

// Flows returns the number of flows seen anywhere.
func (m *Map) Flows() int { return len(m.seen) }

// All iterates over the flows seen anywhere, with their sightings, in the order in which
// they were added first.
func (m *Map) All() iter.Seq2[model.FlowKey, []Sighting] {
	return func(yield func(model.FlowKey, []Sighting) bool) {
		for _, key := range m.order {
			if !yield(key, m.seen[key]) {
				return
			}
		}
	}
}

// Reported reports whether a switch's flowset is on the map.
func (m *Map) Reported(sw model.NodeID) bool { return len(m.sets[sw]) > 0 }

// Complete reports whether everything that a switch counted is on the map.
func (m *Map) Complete(sw model.NodeID) bool {
	for _, d := range m.sets[sw] {
		if !d.Complete() || m.lost[family{sw, d.V6}] {
			return false
		}
	}
	return m.Reported(sw)
}

// partial reports whether something that a switch reported about a family of flows
// did not arrive.
func (m *Map) partial(sw model.NodeID, v6 bool) bool {
	for _, d := range m.sets[sw] {
		if d.V6 == v6 && d.MissingCells+d.MissingFilter > 0 {
			return true
		}
	}
	return m.lost[family{sw, v6}]
}

// At returns the sighting of a flow at a switch, if any.
func (m *Map) At(sw model.NodeID, key model.FlowKey) (Sighting, Presence) {
	for _, s := range m.seen[key] {
		if s.Switch == sw {
			return s, Seen
		}
	}
	absent := false
	if m.lost[family{sw, key.V6}] {
		return Sighting{Switch: sw}, Unknown
	}
	for _, d := range m.sets[sw] {
		if d.V6 != key.V6 {
			continue // not about this flow
		}
		if !d.Absent(key) {
			return Sighting{Switch: sw}, Unknown
		}
		absent = true
	}
	if absent {
		return Sighting{Switch: sw}, Absent
	}
	return Sighting{Switch: sw}, Unknown
}
