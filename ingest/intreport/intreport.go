// Package intreport decodes the telemetry reports of INT-capable switches into the
// reports of Weft's switches: labels of ports, and mirrors of packets. INT-XD and
// INT-MX switches report one hop each; the sink of INT-MD reports the whole stack.
// Package analyze makes traces and port states of them. Layout: docs/formats/intreport.md. Manual: docs/serve.md.
package intreport

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/keyed"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Config defines ids and units in reports, which the format leaves to the devices.
type Config struct {
	// Switch returns the switch with a node id.
	Switch func(node uint32) (model.NodeID, bool)
	// Port converts a switch's port number to Weft's; nil: they are the same.
	Port func(sw model.NodeID, port uint16) model.PortID
	// HasPort reports whether a switch has a port; nil: it has all. Port 0 is none.
	HasPort func(sw model.NodeID, port model.PortID) bool
	// Sends reports whether an address is one that a switch reports from; nil: all
	// are.
	Sends func(sw model.NodeID, from netip.Addr) bool
	// Tick is the unit of times and latencies, Cell that of queue depths.
	Tick time.Duration
	Cell model.Bytes
	// FullUtilization is the utilization value of a fully loaded link.
	FullUtilization uint32
}

// DefaultConfig has times in nanoseconds, depths in bytes and utilization in
// percent.
func DefaultConfig() Config { return Config{Tick: time.Nanosecond, Cell: 1, FullUtilization: 100} }

// Stats are the counters of a Decoder.
// Reports = Used + Other + Unknown + UnknownPort + Empty.
type Stats struct {
	Datagrams uint64 `json:"datagrams"`
	Malformed uint64 `json:"malformed"` // datagrams, or the rest of them
	Denied    uint64 `json:"denied"`    // datagrams from an address that is not the switch's
	Missing   uint64 `json:"missing"`   // lost datagrams, by sequence numbers; late ones are not subtracted
	Restarts  uint64 `json:"restarts"`  // jumps of sequence numbers beyond the window

	Reports     uint64 `json:"reports"`
	Used        uint64 `json:"used"`         // decoded into a label, a mirror or a postcard
	Other       uint64 `json:"other"`        // of a type that is not INT
	Unknown     uint64 `json:"unknown"`      // of a node that is not a switch of the fabric
	UnknownPort uint64 `json:"unknown_port"` // of a port that the switch has not
	Empty       uint64 `json:"empty"`        // neither port nor packet

	Labels      uint64 `json:"labels"`
	Mirrors     uint64 `json:"mirrors"`
	Postcards   uint64 `json:"postcards"`
	Drops       uint64 `json:"drops"`        // reports of packets that a switch dropped
	UnknownHops uint64 `json:"unknown_hops"` // hops of a stack that are not switches of the fabric, or not their ports
	// Unsynced is the number of times that were more than a second off and were
	// replaced by the arrival time.
	Unsynced uint64 `json:"unsynced"`
}

// Output receives decoded reports in Weft's formats: the data of a label export,
// a mirror, and a postcard for keyed memory, unless Keyed is nil. None may be kept.
// Refused, if not nil, is called with what is refused because of who sent it, or what it
// is about.
type Output struct {
	Label   func(at model.Time, export []byte)
	Mirror  func(at model.Time, m *mirror.Mirror)
	Keyed   func(at model.Time, reports []dta.Report)
	Refused func(from netip.Addr, why translate.Refusal, reports int)
}

// Decoder decodes datagrams. It is for one goroutine.
type Decoder struct {
	cfg    Config
	out    Output
	stats  Stats
	next   map[sequenceKey]*sequence
	reader intreport.Reader
	packet packet.Packet
	mirror mirror.Mirror
	data   []byte
	made   []byte
	cards  keyed.PostcardReports
}

// NewDecoder makes a decoder.
func NewDecoder(cfg Config, out Output) (*Decoder, error) {
	switch {
	case cfg.Switch == nil:
		return nil, errors.New("intreport: Config.Switch is nil, want a lookup of switches by node id")
	case cfg.Tick <= 0 || cfg.Cell <= 0 || cfg.FullUtilization == 0:
		return nil, fmt.Errorf("intreport: ticks of %v, cells of %v, full utilization %d; want all above 0",
			cfg.Tick, cfg.Cell, cfg.FullUtilization)
	}
	return &Decoder{cfg: cfg, out: out, next: map[sequenceKey]*sequence{}}, nil
}

// Stats returns the current counters.
func (d *Decoder) Stats() Stats { return d.stats }

// HandleDatagram decodes the payload of one UDP packet, which arrived at a time of
// the collector's clock. Every datagram is counted.
func (d *Decoder) HandleDatagram(at model.Time, from netip.Addr, b []byte) {
	d.stats.Datagrams++
	if d.reader.Reset(b) != nil {
		d.stats.Malformed++
		return
	}
	g := d.reader.Group
	sw, known := d.cfg.Switch(g.Node)
	if known {
		if d.cfg.Sends != nil && !d.cfg.Sends(sw, from) {
			d.stats.Denied++
			d.refuse(from, translate.AddressNotAllowed, 0)
			return
		}
		d.trackSequence(at, from, g)
	}
	for {
		var rep intreport.Report
		more, err := d.reader.Next(&rep)
		if err != nil {
			d.stats.Malformed++ // the reader continues after it, if it can
			continue
		}
		if !more {
			return
		}
		d.stats.Reports++
		switch {
		case rep.Type != intreport.INT:
			d.stats.Other++
		case !known:
			d.stats.Unknown++
			d.refuse(from, translate.UnknownReporter, 1)
		case !d.hasPorts(sw, &rep.Metadata):
			d.stats.UnknownPort++
			d.refuse(from, translate.UnknownPlace, 1)
		default:
			d.handleReport(at, sw, &rep)
		}
	}
}

func (d *Decoder) refuse(from netip.Addr, why translate.Refusal, reports int) {
	if d.out.Refused != nil {
		d.out.Refused(from, why, reports)
	}
}

// hasPorts reports whether the switch has the ports of a hop.
func (d *Decoder) hasPorts(sw model.NodeID, m *intreport.Metadata) bool {
	return d.cfg.HasPort == nil || !m.Has(intreport.BitPorts) ||
		d.cfg.HasPort(sw, d.port(sw, m.Ingress)) && d.cfg.HasPort(sw, d.port(sw, m.Egress))
}

// handleReport decodes a report of a switch.
func (d *Decoder) handleReport(at model.Time, sw model.NodeID, rep *intreport.Report) {
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
	if frame != nil && rep.Flags&intreport.Dropped == 0 && d.emitPostcard(at, sw, &rep.Metadata, hopOf(&d.packet)) {
		used = true
	}
	if !used {
		d.stats.Empty++
		return
	}
	d.stats.Used++
}

// frame returns the packet in a report, with an Ethernet header, or nil. It also
// parses the packet.
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

// emitMirror emits a report's packet as a mirror: both mean that a packet passed a
// switch.
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

// emitLabel emits the port metadata as a label.
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

// emitStack emits the hops of an INT-MD stack in a packet, if there is one.
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
		return false // a packet without INT
	}
	for i := range s.Len() {
		hop := s.Hop(i)
		sw, known := d.cfg.Switch(hop.Node)
		if !hop.Has(intreport.BitNode) || !known || !d.hasPorts(sw, &hop.Metadata) {
			d.stats.UnknownHops++
			continue
		}
		used = d.emitLabel(at, sw, &hop.Metadata) || used
		used = d.emitPostcard(at, sw, &hop.Metadata, stackHop(i, s.Len())) || used
	}
	return used
}

// reportTime returns the egress time of a report, else its ingress time, else its
// arrival time at the collector.
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

// maxSkew is the maximum offset of a switch's clock: one that is further off
// counts from another epoch, such as its boot.
const maxSkew = time.Second

func (d *Decoder) port(sw model.NodeID, port uint16) model.PortID {
	if d.cfg.Port != nil {
		return d.cfg.Port(sw, port)
	}
	return model.PortID(port)
}
