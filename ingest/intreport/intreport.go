// Package intreport brings in the telemetry reports of INT-capable switches and
// makes of them what Weft's own switches report: labels of ports, and mirrors of
// packets. INT-XD and INT-MX switches report one hop each; the sink of INT-MD
// reports the whole stack. What traces and port states they make is analyze's
// work. Layout: docs/formats/intreport.md. Manual: docs/serve.md.
package intreport

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Config says what the numbers in reports mean, which the format leaves to the
// devices.
type Config struct {
	// Switch tells which switch has a number.
	Switch func(node uint32) (model.NodeID, bool)
	// Port turns a switch's number of a port into ours; nil: it is the same.
	Port func(sw model.NodeID, port uint16) model.PortID
	// Tick is the unit of times and latencies, Cell that of queue depths.
	Tick time.Duration
	Cell model.Bytes
	// FullUtilization is what utilisation is given in parts of: the value of a full link.
	FullUtilization uint32
}

// DefaultConfig takes times for nanoseconds, depths for bytes and utilisation
// for percent.
func DefaultConfig() Config { return Config{Tick: time.Nanosecond, Cell: 1, FullUtilization: 100} }

// Stats account for datagrams and reports.
// Reports = Used + Other + Unknown + Empty.
type Stats struct {
	Datagrams uint64 `json:"datagrams"`
	Malformed uint64 `json:"malformed"` // datagrams, or the rest of them
	Missing   uint64 `json:"missing"`   // datagrams that never came, by their numbers; late ones are not subtracted

	Reports uint64 `json:"reports"`
	Used    uint64 `json:"used"`    // made a label or a mirror
	Other   uint64 `json:"other"`   // of a type that is not INT
	Unknown uint64 `json:"unknown"` // of a node that is no switch of the fabric
	Empty   uint64 `json:"empty"`   // neither port nor packet

	Labels  uint64 `json:"labels"`
	Mirrors uint64 `json:"mirrors"`
	Drops   uint64 `json:"drops"`  // reports of packets that a switch dropped
	UnknownHops  uint64 `json:"strays"` // hops of a stack of nodes that are no switches
	// Unsynced times were more than a second off; that of the arrival was taken.
	Unsynced uint64 `json:"unsynced"`
}

// Output takes what reports say, in the form of Weft's own: the data of a label
// export, and a mirror. Neither may be kept.
type Output struct {
	Label  func(at model.Time, export []byte)
	Mirror func(at model.Time, m *mirror.Mirror)
}

// Decoder reads datagrams. One goroutine uses it.
type Decoder struct {
	cfg    Config
	out    Output
	stats  Stats
	next   map[source]uint32
	reader intreport.Reader
	packet packet.Packet
	mirror mirror.Mirror
	data   []byte
	made   []byte
}

// source numbers its datagrams.
type source struct {
	node     uint32
	hardware uint8
}

// maxSources bounds those whose numbers are followed.
const maxSources = 1 << 16

// NewDecoder makes a decoder.
func NewDecoder(cfg Config, out Output) (*Decoder, error) {
	switch {
	case cfg.Switch == nil:
		return nil, errors.New("intreport: no way to tell switches by their numbers, want a Switch")
	case cfg.Tick <= 0 || cfg.Cell <= 0 || cfg.FullUtilization == 0:
		return nil, fmt.Errorf("intreport: ticks of %v, cells of %v, %d for a full link; want all above 0", cfg.Tick, cfg.Cell, cfg.FullUtilization)
	}
	return &Decoder{cfg: cfg, out: out, next: map[source]uint32{}}, nil
}

// Stats returns the present counts.
func (d *Decoder) Stats() Stats { return d.stats }

// HandleDatagram reads the payload of one UDP packet, which came at an instant of the
// collector's clock. Whatever it is, it is counted.
func (d *Decoder) HandleDatagram(at model.Time, b []byte) {
	d.stats.Datagrams++
	if d.reader.Reset(b) != nil {
		d.stats.Malformed++
		return
	}
	d.trackSequence(d.reader.Group)
	for {
		var rep intreport.Report
		more, err := d.reader.Next(&rep)
		if err != nil {
			d.stats.Malformed++ // the reader goes on behind it, if it can
			continue
		}
		if !more {
			return
		}
		d.stats.Reports++
		d.handleReport(at, d.reader.Group.Node, &rep)
	}
}

// trackSequence counts datagrams that are missing.
func (d *Decoder) trackSequence(g intreport.Group) {
	s := source{g.Node, g.Hardware}
	due, known := d.next[s]
	if !known && len(d.next) >= maxSources {
		return
	}
	if ahead := (g.Seq - due) % intreport.SeqModulus; known && ahead < intreport.SeqModulus/2 {
		d.stats.Missing += uint64(ahead)
	} else if known {
		return // late, or begun again: the newest number stays
	}
	d.next[s] = (g.Seq + 1) % intreport.SeqModulus
}

func (d *Decoder) handleReport(at model.Time, node uint32, rep *intreport.Report) {
	if rep.Type != intreport.INT {
		d.stats.Other++
		return
	}
	sw, known := d.cfg.Switch(node)
	if !known {
		d.stats.Unknown++
		return
	}
	if rep.Flags&intreport.Dropped != 0 {
		d.stats.Drops++
	}
	frame := d.frame(rep)
	used := d.emitMirror(at, sw, rep, frame)
	if d.emitLabel(at, sw, &rep.Metadata) {
		used = true
	}
	if d.emitStack(at, frame) {
		used = true
	}
	if !used {
		d.stats.Empty++
		return
	}
	d.stats.Used++
}

// frame is the packet in a report, with an Ethernet header, or nil. It leaves
// the packet parsed.
func (d *Decoder) frame(rep *intreport.Report) []byte {
	d.packet = packet.Packet{}
	frame := rep.Contents
	switch rep.Inner {
	case intreport.InnerEthernet:
	case intreport.InnerIPv4, intreport.InnerIPv6:
		eth := packet.Ethernet{Type: packet.TypeIPv4}
		if rep.Inner == intreport.InnerIPv6 {
			eth.Type = packet.TypeIPv6
		}
		d.made = append(eth.AppendTo(d.made[:0]), frame...)
		frame = d.made
	default:
		return nil
	}
	if len(frame) < packet.EthernetSize || d.packet.Parse(frame) != nil || d.packet.Depth == 0 {
		return nil
	}
	return frame
}

// emitMirror hands on a report's packet as a mirror: it says that a packet passed
// a switch, which is what a mirror says.
func (d *Decoder) emitMirror(at model.Time, sw model.NodeID, rep *intreport.Report, frame []byte) bool {
	if frame == nil {
		return false
	}
	h := &d.packet.Outer
	length := max(len(frame), int(h.Start)+int(h.Length))
	m := &d.mirror
	*m = mirror.Mirror{Reasons: mirror.Rule, Switch: sw, Time: d.reportTime(at, &rep.Metadata), Length: uint16(min(length, math.MaxUint16)), Frame: frame}
	if rep.Has(intreport.BitPorts) {
		m.In = d.port(sw, rep.Ingress)
		if rep.Flags&intreport.Dropped == 0 {
			m.Out = d.port(sw, rep.Egress)
		}
	}
	d.stats.Mirrors++
	d.out.Mirror(at, m)
	return true
}

// emitLabel hands on what metadata says of a port as a label.
func (d *Decoder) emitLabel(at model.Time, sw model.NodeID, m *intreport.Metadata) bool {
	const states = intreport.BitQueue | intreport.BitHopLatency | intreport.BitUtilisation
	if !m.Has(intreport.BitPorts) || m.Bits&^m.Missing&states == 0 {
		return false
	}
	it := label.Item{
		Switch: sw, Ingress: d.port(sw, m.Ingress), Egress: d.port(sw, m.Egress), Time: d.reportTime(at, m),
		Latency: time.Duration(m.HopLatency) * d.cfg.Tick, Queue: m.Queue,
	}
	it.DequeueDepth = model.Bytes(m.QueueDepth) * d.cfg.Cell
	it.EnqueueDepth = it.DequeueDepth
	it.Utilisation = uint16(min(uint64(m.Utilisation)*math.MaxUint16/uint64(d.cfg.FullUtilization), math.MaxUint16))
	e := label.Export{Switch: sw, Time: it.Time, Key: d.packet.Innermost().Key}
	d.data = e.AppendWithLabel(d.data[:0], it, label.Option{NextHeader: model.UDP, MaxHop: label.DefaultMaxHop})
	d.stats.Labels++
	d.out.Label(at, d.data)
	return true
}

// emitStack reads the hops that INT-MD left in a packet, if it did.
func (d *Decoder) emitStack(at model.Time, frame []byte) (used bool) {
	if frame == nil {
		return false
	}
	var s intreport.Stack
	in := d.packet.Innermost()
	if int(in.Payload) >= len(frame) {
		return false
	}
	if _, err := s.Parse(frame[in.Payload:]); err != nil {
		return false // an ordinary packet
	}
	for i := range s.Len() {
		hop := s.Hop(i)
		sw, known := d.cfg.Switch(hop.Node)
		if !hop.Has(intreport.BitNode) || !known {
			d.stats.UnknownHops++
			continue
		}
		used = d.emitLabel(at, sw, &hop.Metadata) || used
	}
	return used
}

// reportTime is a report's own, when a packet left or else came, or that of its
// arrival here.
func (d *Decoder) reportTime(at model.Time, m *intreport.Metadata) model.Time {
	for _, t := range []struct {
		bit   intreport.Bits
		ticks uint64
	}{{intreport.BitEgressTime, m.EgressTime}, {intreport.BitIngressTime, m.IngressTime}} {
		if !m.Has(t.bit) {
			continue
		}
		if t.ticks <= math.MaxInt64/uint64(d.cfg.Tick) {
			if own := model.Time(t.ticks * uint64(d.cfg.Tick)); own.Sub(at).Abs() <= maxSkew {
				return own
			}
		}
		d.stats.Unsynced++
		break
	}
	return at
}

// maxSkew is how far a switch's clock may be from ours: one that is further off
// counts from elsewhere, such as from its start.
const maxSkew = time.Second

func (d *Decoder) port(sw model.NodeID, port uint16) model.PortID {
	if d.cfg.Port != nil {
		return d.cfg.Port(sw, port)
	}
	return model.PortID(port)
}
