// Package erspan decodes ERSPAN mirrors, including SONiC's with padding, from
// capture files and from a raw socket, into records of wire/mirror. Package
// analyze/trace makes traces of them.
// Layouts: docs/formats/erspan.md. Manual: docs/traces.md.
package erspan

import (
	"errors"
	"math"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/roce"
)

// Config describes the senders of mirrors.
type Config struct {
	// Switch returns the switch with an address.
	Switch func(from model.Addr) (model.NodeID, bool)
	// Pads are for switches whose headers do not contain the number of bytes
	// between the first four of GRE and the frame.
	Pads map[model.Addr]int
	// HasPort reports whether a switch has a port; nil: it has all. Vendors number
	// ports as they like: one that the switch has not is not known.
	HasPort func(sw model.NodeID, port model.PortID) bool
	// Refused, if not nil, is called with packets from an address of no switch.
	Refused func(from netip.Addr, why translate.Refusal, reports int)
	// Debug is the DSCP bits of the debug mark.
	Debug uint8
	// WeftReports also decodes mirrors in the Append reports of Weft's switches,
	// which contain the switch.
	WeftReports bool
}

// Stats are the counters of a Decoder. Packets = Mirrored + all from Other to
// Empty; a datagram of Weft's reports may hold several mirrors, or none.
type Stats struct {
	Packets  uint64 `json:"packets"`
	Mirrored uint64 `json:"mirrored"` // packets with a mirror
	Mirrors  uint64 `json:"mirrors"`

	Other       uint64 `json:"other"`       // neither GRE nor a Weft report
	NotIP       uint64 `json:"not_ip"`      // or an inconsistent IP header
	Fragment    uint64 `json:"fragment"`    // of a larger packet
	Unsupported uint64 `json:"unsupported"` // version of GRE, or its routing field
	NoMirror    uint64 `json:"no_mirror"`   // GRE with another payload
	Version     uint64 `json:"version"`     // of the ERSPAN header does not match the GRE protocol type
	Truncated   uint64 `json:"truncated"`   // ends inside a header
	Unknown     uint64 `json:"unknown"`     // from an address of no switch
	Empty       uint64 `json:"empty"`       // less than an Ethernet header of the frame

	// Missing is the number of lost mirrors, from gaps in sequence numbers; Late
	// those that arrived after one with a higher number.
	Missing uint64 `json:"missing"`
	Late    uint64 `json:"late"`

	UnknownPort uint64 `json:"unknown_port"` // mirrors whose port the switch has not: it is left out
}

// Decoder decodes packets into mirrors. It is for one goroutine.
type Decoder struct {
	cfg   Config
	stats Stats
	next  map[session]uint32 // expected sequence number
	outer packet.Packet
	inner packet.Packet
	in    erspan.Mirror
	out   mirror.Mirror
	made  []byte // an Ethernet header, and the IP packet that arrived without one
}

// session is an ERSPAN session of a switch, with separate sequence numbers.
type session struct {
	sw      model.NodeID
	session uint16
}

// NewDecoder makes a decoder.
func NewDecoder(cfg Config) (*Decoder, error) {
	if cfg.Switch == nil {
		return nil, errors.New("erspan: Config.Switch is nil, want a lookup of switches by address")
	}
	return &Decoder{cfg: cfg, next: map[session]uint32{}}, nil
}

// Stats returns the current counters.
func (d *Decoder) Stats() Stats { return d.stats }

// DecodeFrame decodes a captured Ethernet frame, and calls emit with the mirrors
// in it; emit must not keep them. Every frame is counted.
func (d *Decoder) DecodeFrame(at model.Time, frame []byte, emit func(*mirror.Mirror)) {
	d.stats.Packets++
	if d.outer.Parse(frame) != nil || d.outer.Depth == 0 {
		d.stats.NotIP++
		return
	}
	d.decodePayload(at, frame, emit)
}

// DecodeIP decodes a captured packet that begins with its IP header.
func (d *Decoder) DecodeIP(at model.Time, ip []byte, emit func(*mirror.Mirror)) {
	d.stats.Packets++
	if d.outer.ParseIP(ip) != nil {
		d.stats.NotIP++
		return
	}
	d.decodePayload(at, ip, emit)
}

// decodePayload decodes the payload of the IP header, the innermost if mirrors are
// tunnelled. A switch that pads may announce a bridged frame (GRE protocol 0x6558)
// where its padding begins: then there is no tunnel to follow.
func (d *Decoder) decodePayload(at model.Time, b []byte, emit func(*mirror.Mirror)) {
	h := d.outer.Innermost()
	if _, pads := d.cfg.Pads[d.outer.Outer.Key.Src]; pads && d.outer.Outer.Key.Proto == model.GRE {
		h = &d.outer.Outer
	}
	b = b[:min(len(b), int(h.Start+h.Length))]
	switch {
	case h.Flags.Has(packet.Fragment):
		d.stats.Fragment++
	case h.Key.Proto == model.GRE:
		d.decodeGREHeader(at, h.Key.Src, b[min(int(h.Transport), len(b)):], emit)
	case d.cfg.WeftReports && h.Key.Proto == model.UDP && h.Key.DstPort == dta.Port && !h.Flags.Has(packet.NoPorts):
		d.decodeReports(b[min(int(h.Payload), len(b)):], emit)
	default:
		d.stats.Other++
	}
}

// DecodeGRE decodes the IP payload of a packet from an address.
func (d *Decoder) DecodeGRE(at model.Time, from model.Addr, b []byte, emit func(*mirror.Mirror)) {
	d.stats.Packets++
	d.decodeGREHeader(at, from, b, emit)
}

func (d *Decoder) decodeGREHeader(at model.Time, from model.Addr, b []byte, emit func(*mirror.Mirror)) {
	var err error
	if pad, fixed := d.cfg.Pads[from]; fixed {
		_, err = d.in.ParsePadded(b, pad)
	} else {
		_, err = d.in.Parse(b)
	}
	switch err {
	case nil:
	case erspan.ErrGRE:
		d.stats.Unsupported++
		return
	case erspan.ErrProtocol:
		d.stats.NoMirror++
		return
	case erspan.ErrVersion:
		d.stats.Version++
		return
	default:
		d.stats.Truncated++
		return
	}
	sw, known := d.cfg.Switch(from)
	if !known {
		d.stats.Unknown++
		if d.cfg.Refused != nil {
			d.cfg.Refused(from.Netip(), translate.UnknownReporter, 1)
		}
		return
	}
	m := &d.in
	if m.GRE.HasSeq && m.Kind != erspan.Padded {
		d.trackSequence(session{sw, m.Session}, m.GRE.Seq)
	}
	frame := m.Frame
	if m.Kind == erspan.TypeIII && m.FrameType == erspan.FrameIP {
		frame = d.addEthernetHeader(frame)
	}
	if len(frame) < packet.EthernetSize {
		d.stats.Empty++
		return
	}
	d.stats.Mirrored++
	d.stats.Mirrors++
	d.out = mirror.Mirror{Switch: sw, Time: at, Frame: frame}
	if port, ok := m.Port(); ok {
		d.out.In = d.portOf(sw, port)
	}
	if m.Kind == erspan.TypeIII {
		d.out.Time = timestampOf(at, m.Timestamp, m.Granularity)
	}
	d.fillMirror()
	emit(&d.out)
}

// portOf returns a port of a switch, or 0 if it has none with this number.
func (d *Decoder) portOf(sw model.NodeID, port uint32) model.PortID {
	p := model.PortID(port)
	if port > math.MaxUint16 || d.cfg.HasPort != nil && !d.cfg.HasPort(sw, p) {
		d.stats.UnknownPort++
		return 0
	}
	return p
}

// DecodeSPAN decodes a packet that a switch mirrored without encapsulation: an
// Ethernet frame, or an IP packet.
func (d *Decoder) DecodeSPAN(at model.Time, sw model.NodeID, data []byte, frame bool, emit func(*mirror.Mirror)) {
	d.stats.Packets++
	if !frame {
		data = d.addEthernetHeader(data)
	}
	if len(data) < packet.EthernetSize {
		d.stats.Empty++
		return
	}
	d.stats.Mirrored++
	d.stats.Mirrors++
	d.out = mirror.Mirror{Switch: sw, Time: at, Frame: data}
	d.fillMirror()
	emit(&d.out)
}

// decodeReports decodes the mirrors in a datagram of Weft's reports.
func (d *Decoder) decodeReports(datagram []byte, emit func(*mirror.Mirror)) {
	var r dta.Reader
	if r.Reset(datagram) != nil {
		d.stats.Other++
		return
	}
	before := d.stats.Mirrors
	for rep := (dta.Report{}); r.Next(&rep); {
		if rep.Primitive != dta.Append {
			continue
		}
		if _, err := d.out.Parse(rep.Data); err == nil {
			d.stats.Mirrors++
			emit(&d.out)
		}
	}
	if d.stats.Mirrors > before {
		d.stats.Mirrored++
	} else {
		d.stats.Other++
	}
}

// window is the longest gap that counts as loss, and how late a mirror may be.
const window = 1 << 16

// trackSequence tracks the sequence numbers of a session. A number that is outside
// the window means that the switch has restarted.
func (d *Decoder) trackSequence(s session, seq uint32) {
	due, known := d.next[s]
	ahead := seq - due
	switch {
	case !known || ahead > window && -ahead > window:
		d.next[s] = seq + 1
	case -ahead <= window && ahead != 0: // it was counted as missing
		d.stats.Late++
		if d.stats.Missing > 0 {
			d.stats.Missing--
		}
	default:
		d.stats.Missing += uint64(ahead)
		d.next[s] = seq + 1
	}
}

// addEthernetHeader prepends an Ethernet header to an IP packet.
func (d *Decoder) addEthernetHeader(ip []byte) []byte {
	if len(ip) == 0 {
		return nil
	}
	eth := packet.Ethernet{Type: packet.TypeIPv4}
	if ip[0]>>4 == 6 {
		eth.Type = packet.TypeIPv6
	}
	d.made = append(eth.AppendTo(d.made[:0]), ip...)
	return d.made
}

// fillMirror sets the fields of Weft's mirrors that ERSPAN does not have: the
// length of the frame, and why it was mirrored, as far as its headers show.
func (d *Decoder) fillMirror() {
	m, p := &d.out, &d.inner
	length := len(m.Frame)
	if p.Parse(m.Frame) == nil && p.Depth > 0 {
		length = max(length, int(p.Outer.Start+p.Outer.Length))
		if p.Outer.DSCP()&d.cfg.Debug != 0 {
			m.Reasons |= mirror.Debug
		}
	}
	m.Length = uint16(min(length, math.MaxUint16))
	in := p.Innermost()
	if in.Key.Proto == model.TCP && in.TCPFlags&(packet.SYN|packet.FIN|packet.RST) != 0 {
		m.Reasons |= mirror.Flag
	}
	if isProtocolPacket(p, m.Frame) {
		m.Reasons |= mirror.Protocol
	}
	if m.Reasons == 0 {
		m.Reasons = mirror.Rule
	}
}

const bgpPort = 179

// isProtocolPacket reports whether a packet belongs to a control protocol: PFC,
// BGP, RDMA connection management, CNPs and NAKs.
func isProtocolPacket(p *packet.Packet, frame []byte) bool {
	in := p.Innermost()
	switch {
	case p.EtherType == packet.TypeMACControl:
		return true
	case in.Key.Proto == model.TCP:
		return in.Key.SrcPort == bgpPort || in.Key.DstPort == bgpPort
	case !in.Flags.Has(packet.RoCE):
		return false
	case roce.Opcode(in.Type) == roce.CNP || in.QP == 1:
		return true
	}
	var a roce.AETH
	if roce.Opcode(in.Type) != roce.Acknowledge || int(in.Payload) > len(frame) {
		return false
	}
	_, err := a.Parse(frame[in.Payload:])
	return err == nil && a.Syndrome.IsNak()
}

// timestampOf returns the time of a type III timestamp: of all with its low bits,
// the one nearest to the mirror's arrival.
func timestampOf(at model.Time, ticks uint32, g erspan.Granularity) model.Time {
	unit := g.Unit()
	if unit == 0 {
		return at
	}
	round := unit << 32
	if g == erspan.PerIEEE1588 {
		round = time.Second
	}
	off := at.Sub(model.Time(time.Duration(ticks)*unit)) % round // by how much the mirror is late, or early
	switch {
	case off > round/2:
		off -= round
	case off < -round/2:
		off += round
	}
	return at.Add(-off)
}
