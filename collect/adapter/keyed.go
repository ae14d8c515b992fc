package adapter

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// PathHops is how many switches a Path has room for.
const PathHops = 5

// Path is what an INT-MD sink found in a packet: the switches it passed.
type Path struct {
	Flow     model.FlowKey
	Switches [PathHops]uint32 // 0 behind the last
}

// Report writes the path under its flow: 20 bytes.
func (p Path) Report(s *Scratch, copies uint8) dta.Report {
	b := s.data[:0]
	for _, sw := range p.Switches {
		b = binary.BigEndian.AppendUint32(b, sw)
	}
	return keyWrite(copies, s.flow(p.Flow), b)
}

// ParsePath reads the value of a path.
func ParsePath(value []byte) (switches [PathHops]uint32, err error) {
	if len(value) != 4*PathHops {
		return switches, ErrSize
	}
	for i := range switches {
		switches[i] = binary.BigEndian.Uint32(value[4*i:])
	}
	return switches, nil
}

// HostCounter is a counter that Marple's switches keep for a source address.
type HostCounter struct {
	Host  model.Addr
	Count uint32
}

// Report writes the newest count, for queries whose counters do not merge.
func (h HostCounter) Report(s *Scratch, copies uint8) dta.Report {
	return keyWrite(copies, s.address(h.Host), s.word(h.Count))
}

// Add adds the count to those of other switches.
func (h HostCounter) Add(s *Scratch, copies uint8) dta.Report {
	return dta.Report{Primitive: dta.KeyIncrement, Retransmit: true, Redundancy: copies, Key: s.address(h.Host), Delta: uint64(h.Count)}
}

// Timeouts is how many TCP timeouts Marple saw a flow have.
type Timeouts struct {
	Flow  model.FlowKey
	Count uint32
}

// Report writes the newest count.
func (t Timeouts) Report(s *Scratch, copies uint8) dta.Report {
	return keyWrite(copies, s.flow(t.Flow), s.word(t.Count))
}

// Microflow is a record that TurboFlow's switches evict.
type Microflow struct {
	Flow    model.FlowKey
	Packets uint32
}

// Add adds the record to what was evicted of the flow before.
func (m Microflow) Add(s *Scratch, copies uint8) dta.Report {
	return dta.Report{Primitive: dta.KeyIncrement, Retransmit: true, Redundancy: copies, Key: s.flow(m.Flow), Delta: uint64(m.Packets)}
}

// Traversal is how a flow passes one switch, for PacketScope's
// troubleshooting: whatever of fixed size its query asks for.
type Traversal struct {
	Switch model.NodeID
	Flow   model.FlowKey
	Data   []byte
}

// Report writes the data under switch and flow.
func (t Traversal) Report(s *Scratch, copies uint8) dta.Report {
	return keyWrite(copies, TraversalKey(s, t.Switch, t.Flow), t.Data)
}

// TraversalKey is what a Traversal is found by.
func TraversalKey(s *Scratch, sw model.NodeID, f model.FlowKey) []byte {
	var tag [4]byte
	binary.BigEndian.PutUint32(tag[:], uint32(sw))
	return s.tagged(tag[:], f)
}

// Digest is the byte that PINT lets a packet carry.
type Digest struct {
	Flow   model.FlowKey
	Packet uint64 // what identifies the packet
	Value  uint8
}

// Report writes the digest into one of lanes places of its flow: which one the
// packet decides, so that the places together hold what one byte could not.
// The paper uses the copies of a key as those places; here the place is a part
// of the key, so that each can have copies of its own.
func (d Digest) Report(s *Scratch, lanes int, copies uint8) dta.Report {
	return keyWrite(copies, DigestKey(s, d.Flow, Lane(d.Packet, lanes)), append(s.data[:0], d.Value))
}

// Lane is the place that a packet decides.
func Lane(packet uint64, lanes int) uint8 {
	return uint8((packet * 0x9e3779b97f4a7c15 >> 32) * uint64(lanes) >> 32)
}

// DigestKey is what the digest in a lane is found by.
func DigestKey(s *Scratch, f model.FlowKey, lane uint8) []byte { return s.tagged([]byte{lane}, f) }

// Result is an answer of one of Sonata's queries, of the size the query has.
type Result struct {
	Query uint32
	Data  []byte
}

// Report writes the newest result of the query.
func (r Result) Report(s *Scratch, copies uint8) dta.Report {
	return keyWrite(copies, ResultKey(s, r.Query), r.Data)
}

// ResultKey is what a query's result is found by.
func ResultKey(s *Scratch, query uint32) []byte {
	return binary.BigEndian.AppendUint32(s.key[:0], query)
}

// Postcard is what a switch reports about a packet in INT-XD or INT-MX.
type Postcard struct {
	Flow  model.FlowKey
	Hop   uint8
	Path  uint8 // hops in all, told by the last; 0 where not known
	Value uint32
}

// Report is the postcard of one hop.
func (p Postcard) Report(s *Scratch, copies uint8) dta.Report {
	return dta.Report{Primitive: dta.Postcarding, Redundancy: copies, Hop: p.Hop, Path: p.Path, Key: s.flow(p.Flow), Data: s.word(p.Value)}
}

// Trajectory is one step of a packet that Trajectory Sampling picked: all
// switches pick the same packets, by a hash of what does not change on the
// way.
type Trajectory struct {
	Label  uint64 // that hash
	Hop    uint8
	Path   uint8
	Switch uint32
}

// Report is the step, under the packet's label.
func (t Trajectory) Report(s *Scratch, copies uint8) dta.Report {
	return dta.Report{
		Primitive: dta.Postcarding, Redundancy: copies, Hop: t.Hop, Path: t.Path,
		Key: TrajectoryKey(s, t.Label), Data: s.word(t.Switch),
	}
}

// TrajectoryKey is what a packet's path is found by.
func TrajectoryKey(s *Scratch, label uint64) []byte {
	return binary.BigEndian.AppendUint64(s.key[:0], label)
}
