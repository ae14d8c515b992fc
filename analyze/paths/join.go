package paths

import (
	"math"
	"slices"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/internal/flowtable"
	"github.com/weft-telemetry/weft/model"
)

// Records are some records of one flowset, as columns. They hold no reference to the
// flowset.
type Records struct {
	Hashes []uint64 // Hash of the keys
	Places []uint32 // in the flowset, ascending
	Keys   []model.FlowKey
	Seen   []Sighting // the counters and ports

	Compact []flows.CompactRecord // instead of Keys and Seen
}

// put sets a sighting at a switch to that of a record.
func (r *Records) put(s *Sighting, sw model.NodeID, i int) {
	if r.Compact == nil {
		*s = r.Seen[i]
		return
	}
	c := &r.Compact[i]
	s.Packets, s.Bytes, s.Switch, s.Exact = c.Packets(), c.Bytes(), sw, true
	s.In, s.Out = c.Ports()
}

// Record returns a record. Its counters are Exact, or they have no grade.
func (r *Records) Record(i int) (one flows.Record) {
	if r.Compact != nil {
		d := flows.Decoded{Compact: r.Compact[i : i+1]}
		d.Record(0, &one)
		return one
	}
	s := &r.Seen[i]
	one = flows.Record{Key: r.Keys[i], Packets: s.Packets, Bytes: s.Bytes, In: s.In, Out: s.Out}
	if s.Exact {
		one.Grade = flows.Exact
	}
	return one
}

// MakeSighting returns the sighting of a record at a switch.
func MakeSighting(sw model.NodeID, r *flows.Record) Sighting {
	return Sighting{Packets: r.Packets, Bytes: r.Bytes, Switch: sw, In: r.In, Out: r.Out, Exact: r.Grade == flows.Exact}
}

// stage holds the records of a map until it is joined.
type stage struct {
	sets    []stagedSet
	flows   []uint32 // by record, in the order in which they were added: its flow
	joins   []flowJoin
	twice   bool   // a switch may have several records of a flow
	touched uint64 // by loads that are made for their effect on the cache
}

// stagedSet is the records of one flowset.
type stagedSet struct {
	of      family
	lost    bool // others of the switch did not arrive
	records Records
}

// flowJoin is what is known about the records of a flow, while they are added and while
// they are joined.
type flowJoin struct {
	n    uint32 // records added; then where its next sighting goes
	last uint32 // the number of flowsets with that of its last record; then sightings joined
}

func (g *stage) reset() {
	clear(g.sets)
	g.sets, g.flows, g.joins, g.twice = g.sets[:0], g.flows[:0], g.joins[:0], false
}

// AddFlowset adds a decoded flowset to the map. A switch may report several for
// one slot: one per port or per address family. All must be added before the first
// question.
func (m *Map) AddFlowset(d *flows.Decoded) {
	m.Add(d)
	n := len(d.Records)
	r := Records{Hashes: make([]uint64, n), Places: make([]uint32, n), Keys: make([]model.FlowKey, n), Seen: make([]Sighting, n)}
	for i := range d.Records {
		r.Keys[i], r.Hashes[i], r.Places[i] = d.Records[i].Key, flowtable.Hash(&d.Records[i].Key), uint32(i)
		r.Seen[i] = MakeSighting(d.Switch, &d.Records[i])
	}
	m.AddRecords(d, &r, m.records)
	m.records += uint32(n)
}

// GrowRecords makes room for a number of records to add.
func (m *Map) GrowRecords(n int) {
	if g := &m.work.stage; n > cap(g.flows) {
		g.flows = slices.Grow(g.flows, n)
	}
}

// AddRecords adds some records of a flowset that the reports have. First is the place of
// the flowset's first record among all records of the slot. The map reads the records
// again at the first question.
func (m *Map) AddRecords(d *flows.Decoded, r *Records, first uint32) {
	if m.joined {
		panic("paths: a flowset is added to a map that is in use")
	}
	g := &m.work.stage
	of := family{d.Switch, d.V6}
	g.twice = g.twice || slices.ContainsFunc(g.sets, func(s stagedSet) bool { return s.of == of })
	g.sets = append(g.sets, stagedSet{of, m.lost[of], *r})
	set := uint32(len(g.sets))
	var ids [flowtable.TouchBatch]uint32
	var unpacked model.FlowKey
	for from := 0; from < len(r.Hashes); from += flowtable.TouchBatch {
		to := min(from+flowtable.TouchBatch, len(r.Hashes))
		touched := m.work.index.table.Touch(r.Hashes[from:to], &ids)
		for _, id := range ids[:to-from] {
			if int(id) < len(m.byID) {
				touched += uint64(m.byID[id])
			}
		}
		g.touched = touched
		for i := from; i < to; i++ {
			key := &unpacked
			if r.Compact != nil {
				r.Compact[i].PutKey(key)
			} else {
				key = &r.Keys[i]
			}
			id := m.work.index.number(key, r.Hashes[i])
			flow, known := m.withID(id)
			if !known {
				flow = m.addFlow(id, r.Hashes[i], first+r.Places[i])
				g.joins = append(g.joins, flowJoin{})
			}
			j := &g.joins[flow]
			g.twice = g.twice || j.last == set
			j.n, j.last = j.n+1, set
			g.flows = append(g.flows, flow)
		}
	}
}

// join moves the records that were added to their flows' pieces of seen.
func (m *Map) join() {
	if m.joined {
		return
	}
	m.joined = true
	g := &m.work.stage
	n := m.Flows()
	m.starts = resized(m.starts, n+1)
	end := uint32(0)
	for i := range n {
		j := &g.joins[i]
		m.starts[i] = end
		end += j.n
		j.n, j.last = m.starts[i], 0
	}
	m.starts[n] = end
	m.seen = resized(m.seen, int(end))
	list := g.flows
	for i := range g.sets {
		set := &g.sets[i]
		if g.twice {
			m.mergeSet(set, list)
		} else {
			m.placeSet(set, list)
		}
		list = list[len(set.records.Hashes):]
	}
	if g.twice {
		m.compact()
	}
	g.reset()
}

// placeSet moves the records of a flowset of which no flow has another one at the switch.
func (m *Map) placeSet(set *stagedSet, list []uint32) {
	joins, seen := m.work.stage.joins, m.seen
	for i, flow := range list[:len(set.records.Hashes)] {
		j := &joins[flow]
		s := &seen[j.n]
		set.records.put(s, set.of.sw, i)
		s.Exact, s.rank = s.Exact && !set.lost, uint16(min(j.last, math.MaxUint16))
		j.n, j.last = j.n+1, j.last+1
	}
}

// mergeSet moves the records of a flowset. Two of a flow at one switch come from two
// of its ports: the counters add up, and the first one's ports are kept, as
// within one flowset.
func (m *Map) mergeSet(set *stagedSet, list []uint32) {
	var s Sighting
	for i, flow := range list[:len(set.records.Hashes)] {
		j := &m.work.stage.joins[flow]
		set.records.put(&s, set.of.sw, i)
		s.Exact, s.rank = s.Exact && !set.lost, uint16(min(j.last, math.MaxUint16))
		before := m.seen[j.n-j.last : j.n]
		k := slices.IndexFunc(before, func(b Sighting) bool { return b.Switch == s.Switch })
		if k < 0 {
			m.seen[j.n] = s
			j.n, j.last = j.n+1, j.last+1
			continue
		}
		have := &before[k]
		have.Packets += s.Packets
		have.Bytes += s.Bytes
		have.Exact = have.Exact && s.Exact
	}
}

// compact closes the gaps that merged sightings have left.
func (m *Map) compact() {
	end := uint32(0)
	for i := range m.work.stage.joins {
		j := &m.work.stage.joins[i]
		m.starts[i] = end
		end += uint32(copy(m.seen[end:], m.seen[j.n-j.last:j.n]))
	}
	m.starts[len(m.work.stage.joins)] = end
	m.seen = m.seen[:end]
}
