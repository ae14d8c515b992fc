// Package convert sends what switches report in formats that commodity switches have:
// labels as INT telemetry reports, mirrors as ERSPAN packets. What no other format
// carries stays in DTA.
//
// An INT report has the state of one port, as an INT-MX switch sends it, without the
// packet: the flow of a label is not in it. Mirrors are ERSPAN type III, which has a
// time and the ingress port, and not why a packet was mirrored or where it left.
// Layouts: docs/formats/intreport.md, docs/formats/erspan.md. Manual: docs/demo.md.
package convert

import (
	"fmt"
	"math"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Format is a format of packets to a collector.
type Format uint8

// Formats.
const (
	DTA    Format = iota // the payload of a UDP packet
	INT                  // the same
	ERSPAN               // the payload of an IP packet: GRE
)

// Lists are successive lists of reports.
type Lists struct {
	First dta.ListID
	Count int
}

func (l Lists) has(id dta.ListID) bool {
	return id >= l.First && id < l.First+dta.ListID(l.Count)
}

// Config is what is converted: the reports of these lists. A Count of 0 converts none.
type Config struct {
	Labels  Lists // to INT
	Mirrors Lists // to ERSPAN
}

// Send takes a packet that a switch sends. It must not keep it.
type Send func(f Format, at model.Time, from model.NodeID, packet []byte) error

// Exporter converts the reports of all switches of a fabric.
type Exporter struct {
	cfg      Config
	send     Send
	switches map[model.NodeID]*numbers

	reader   dta.Reader
	datagram []byte // of the reports that stay
	packet   []byte
	inner    packet.Packet
}

// numbers are the sequence numbers of a switch, for each format.
type numbers struct {
	reports bool    // the switch has sent reports
	next    dta.Seq // of its own reports
	dta     dta.Writer
	int     uint32
	erspan  uint32
}

// follow numbers the next datagram after those before. Reports that were lost before
// they came here stay missing.
func (n *numbers) follow(sw model.NodeID, h dta.Header) {
	if !n.reports {
		n.reports, n.next, n.dta = true, h.Seq, dta.NewWriter(sw, h.Seq)
	}
	if lost := h.Seq.Sub(n.next); lost >= 0 {
		n.dta = dta.NewWriter(sw, n.dta.Seq()+dta.Seq(lost))
		n.next = h.Seq + dta.Seq(h.Count)
	}
}

// session is the ERSPAN session of all mirrors.
const session = 1

// NewExporter returns an exporter.
func NewExporter(cfg Config, send Send) *Exporter {
	return &Exporter{cfg: cfg, send: send, switches: map[model.NodeID]*numbers{}, datagram: make([]byte, math.MaxUint16)}
}

// Datagram sends the reports of a DTA datagram from a switch: those that are converted,
// and then the others in one datagram.
func (e *Exporter) Datagram(at model.Time, from model.NodeID, datagram []byte) error {
	if err := e.reader.Reset(datagram); err != nil {
		return fmt.Errorf("convert a datagram of switch %d: %w", from, err)
	}
	n := e.numbers(from)
	n.follow(from, e.reader.Header())
	rest := &n.dta
	rest.Begin(e.datagram)
	for rep := (dta.Report{}); e.reader.Next(&rep); {
		converted, err := e.convert(at, &rep)
		if err != nil {
			return err
		}
		if converted {
			continue
		}
		if err := rest.AddReport(&rep); err != nil {
			return fmt.Errorf("convert a datagram of switch %d: %w", from, err)
		}
	}
	if err := e.reader.Err(); err != nil {
		return fmt.Errorf("convert a datagram of switch %d: %w", from, err)
	}
	if rest.Count() == 0 {
		return nil
	}
	return e.send(DTA, at, from, rest.Finish())
}

func (e *Exporter) numbers(sw model.NodeID) *numbers {
	n := e.switches[sw]
	if n == nil {
		n = &numbers{}
		e.switches[sw] = n
	}
	return n
}

// convert sends a report in another format, and returns false if it has none.
func (e *Exporter) convert(at model.Time, rep *dta.Report) (bool, error) {
	switch {
	case rep.Primitive != dta.Append:
		return false, nil
	case e.cfg.Labels.has(rep.List):
		var x label.Export
		if _, err := x.Parse(rep.Data); err != nil {
			return false, fmt.Errorf("convert labels: %w", err)
		}
		for i := range x.Labels.Len() {
			it := x.Labels.Item(i)
			if err := e.sendINT(at, &it); err != nil {
				return false, err
			}
		}
		return true, nil
	case e.cfg.Mirrors.has(rep.List):
		var m mirror.Mirror
		if _, err := m.Parse(rep.Data); err != nil {
			return false, fmt.Errorf("convert a mirror: %w", err)
		}
		if e.inner.Parse(m.Frame) != nil || e.inner.Depth == 0 {
			return false, nil // mirror sessions of switches have no PFC frames
		}
		return true, e.sendERSPAN(at, &m)
	}
	return false, nil
}

// sendINT sends a label as its switch would have reported it.
func (e *Exporter) sendINT(at model.Time, it *label.Item) error {
	n := e.numbers(it.Switch)
	g := intreport.Group{Node: uint32(it.Switch), Seq: n.int}
	n.int++
	r := intreport.Report{Type: intreport.INT, Inner: intreport.InnerNone, Flags: intreport.Tracked, Metadata: intreport.Metadata{
		Bits:    intreport.BitPorts | intreport.BitHopLatency | intreport.BitQueue | intreport.BitEgressTime | intreport.BitUtilisation,
		Ingress: uint16(it.Ingress), Egress: uint16(it.Egress), HopLatency: uint32(min(it.Latency, math.MaxUint32-1)), Queue: it.Queue,
		QueueDepth: uint32(min(it.DequeueDepth, math.MaxUint32)), EgressTime: uint64(it.Time), Utilisation: percent(it.Utilisation),
	}}
	e.packet = r.AppendTo(g.AppendTo(e.packet[:0]))
	return e.send(INT, at, it.Switch, e.packet)
}

// percent rounds a share of 65535.
func percent(share uint16) uint32 { return (100*uint32(share) + math.MaxUint16/2) / math.MaxUint16 }

// platform is the id of a sub-header whose first word has the port and whose second
// the upper half of the time.
const platform = 7

func (e *Exporter) sendERSPAN(at model.Time, m *mirror.Mirror) error {
	n := e.numbers(m.Switch)
	ticks := uint64(m.Time) / uint64(erspan.Per100ns.Unit())
	out := erspan.Mirror{
		Kind: erspan.TypeIII, Session: session, Truncated: len(m.Frame) < int(m.Length), PDU: true,
		Timestamp: uint32(ticks), Granularity: erspan.Per100ns, HasPlatform: true,
		Platform: platform<<58 | uint64(m.In)<<32 | ticks>>32, Frame: m.Frame,
	}
	out.GRE.HasSeq, out.GRE.Seq = true, n.erspan
	n.erspan++
	e.packet = out.AppendTo(e.packet[:0])
	return e.send(ERSPAN, at, m.Switch, e.packet)
}
