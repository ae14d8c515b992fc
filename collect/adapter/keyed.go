package adapter

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// PathHops is the maximum number of switches of a Path.
const PathHops = 5

// Path is the path that an INT-MD sink read from a packet.
type Path struct {
	Flow     model.FlowKey
	Switches [PathHops]uint32 // 0 after the last
}

// Report writes the path with its flow as the key: 20 bytes.
func (p Path) Report(s *Scratch, copies uint8) dta.Report {
	b := s.data[:0]
	for _, sw := range p.Switches {
		b = binary.BigEndian.AppendUint32(b, sw)
	}
	return keyWrite(copies, s.flow(p.Flow), b)
}

// ParsePath parses the value of a path.
func ParsePath(value []byte) (switches [PathHops]uint32, err error) {
	if len(value) != 4*PathHops {
		return switches, ErrSize
	}
	for i := range switches {
		switches[i] = binary.BigEndian.Uint32(value[4*i:])
	}
	return switches, nil
}

// HostCounter is a counter of Marple's switches for a source address.
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

// Timeouts is the number of TCP timeouts of a flow, from Marple.
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

// Add adds the record to earlier evicted records of the flow.
func (m Microflow) Add(s *Scratch, copies uint8) dta.Report {
	return dta.Report{Primitive: dta.KeyIncrement, Retransmit: true, Redundancy: copies, Key: s.flow(m.Flow), Delta: uint64(m.Packets)}
}

// Traversal is how a flow passes one switch, for PacketScope's
// troubleshooting: data of fixed size that its query selects.
type Traversal struct {
	Switch model.NodeID
	Flow   model.FlowKey
	Data   []byte
}

// Report writes the data with switch and flow as the key.
func (t Traversal) Report(s *Scratch, copies uint8) dta.Report {
	return keyWrite(copies, TraversalKey(s, t.Switch, t.Flow), t.Data)
}

// TraversalKey is the key of a Traversal.
func TraversalKey(s *Scratch, sw model.NodeID, f model.FlowKey) []byte {
	var tag [4]byte
	binary.BigEndian.PutUint32(tag[:], uint32(sw))
	return s.tagged(tag[:], f)
}

// Digest is the byte that a packet carries in PINT.
type Digest struct {
	Flow   model.FlowKey
	Packet uint64 // identifies the packet
	Value  uint8
}

// Report writes the digest into one of the lanes of its flow. The packet selects
// the lane, so that the lanes together hold more than one byte. The paper uses
// the copies of a key as lanes; here the lane is a part of the key, so that each
// can have separate copies.
func (d Digest) Report(s *Scratch, lanes int, copies uint8) dta.Report {
	return keyWrite(copies, DigestKey(s, d.Flow, Lane(d.Packet, lanes)), append(s.data[:0], d.Value))
}

// Lane is the lane that a packet selects.
func Lane(packet uint64, lanes int) uint8 {
	return uint8((packet * 0x9e3779b97f4a7c15 >> 32) * uint64(lanes) >> 32)
}

// DigestKey is the key of the digest in a lane.
func DigestKey(s *Scratch, f model.FlowKey, lane uint8) []byte { return s.tagged([]byte{lane}, f) }

// Result is a result of one of Sonata's queries, of the query's fixed size.
type Result struct {
	Query uint32
	Data  []byte
}

// Report writes the newest result of the query.
func (r Result) Report(s *Scratch, copies uint8) dta.Report {
	return keyWrite(copies, ResultKey(s, r.Query), r.Data)
}

// ResultKey is the key of a query's result.
func ResultKey(s *Scratch, query uint32) []byte {
	return binary.BigEndian.AppendUint32(s.key[:0], query)
}

// Postcard is a switch's report about a packet in INT-XD or INT-MX.
type Postcard struct {
	Flow  model.FlowKey
	Hop   uint8
	Path  uint8 // number of hops, reported by the last; 0 if unknown
	Value uint32
}

// Report is the postcard of one hop.
func (p Postcard) Report(s *Scratch, copies uint8) dta.Report {
	return dta.Report{Primitive: dta.Postcarding, Redundancy: copies, Hop: p.Hop, Path: p.Path, Key: s.flow(p.Flow), Data: s.word(p.Value)}
}

// Trajectory is one hop of a packet that Trajectory Sampling selected: all
// switches select the same packets, by a hash of the fields that are the same at
// every hop.
type Trajectory struct {
	Label  uint64 // that hash
	Hop    uint8
	Path   uint8
	Switch uint32
}

// Report is the hop, with the packet's label as the key.
func (t Trajectory) Report(s *Scratch, copies uint8) dta.Report {
	return dta.Report{
		Primitive: dta.Postcarding, Redundancy: copies, Hop: t.Hop, Path: t.Path,
		Key: TrajectoryKey(s, t.Label), Data: s.word(t.Switch),
	}
}

// TrajectoryKey is the key of a packet's path.
func TrajectoryKey(s *Scratch, label uint64) []byte {
	return binary.BigEndian.AppendUint64(s.key[:0], label)
}
