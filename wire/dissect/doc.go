// Package dissect decodes the headers of a frame into named layers and fields
// for display: a trace's first bytes as an operator reads them. It accepts any
// bytes, truncated frames too, and reports where dissection stopped. Programs
// that need a few fields of many packets use wire/packet.
package dissect

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Layer is one header of a frame, or the payload after the last one.
type Layer struct {
	Name    string // as in "IPv4"
	Offset  int    // of its first byte in the frame
	Size    int    // bytes; all remaining bytes where dissection stopped
	Fields  []Field
	Problem string // why dissection stopped here, or empty
}

// Field is one value of a header.
type Field struct {
	Name   string
	Value  string
	Offset int // in the frame, of the first byte that holds a part of it
	Size   int
}

// maxLayers bounds the work on hostile frames: a probe through eight switches
// has eight IP headers and few others.
const maxLayers = 40

// Frame dissects a frame from its Ethernet header on. Layers follow each other
// without gaps and end with the frame.
func Frame(b []byte) []Layer {
	r := &reader{b: b}
	next := ethernet
	for next != nil && len(r.layers) < maxLayers {
		next = next(r)
	}
	if rest := len(r.rest()); rest > 0 || len(r.layers) == 0 {
		l := Layer{Name: "payload", Offset: r.at, Size: rest}
		if len(r.layers) >= maxLayers {
			l.Problem = fmt.Sprintf("more than %d headers", maxLayers)
		}
		r.layers = append(r.layers, l)
	}
	if rest := len(b) - len(r.b); rest > 0 {
		r.layers = append(r.layers, Layer{Name: "padding", Offset: len(r.b), Size: rest})
	}
	return r.layers
}

// reader is the dissector's position between two headers.
type reader struct {
	b      []byte // up to the end of the IP packet that is being read
	at     int
	layers []Layer
}

// step dissects one header and returns the step for the next one, or nil.
type step func(*reader) step

func (r *reader) rest() []byte { return r.b[r.at:] }

// addLayer appends a header of n bytes. The offsets of its fields count from its
// first byte.
func (r *reader) addLayer(name string, n int, fields ...Field) {
	for i := range fields {
		fields[i].Offset += r.at
	}
	r.layers = append(r.layers, Layer{Name: name, Offset: r.at, Size: n, Fields: fields})
	r.at += n
}

// endAt ends the input after an IP packet of this length that begins at the
// current offset: frames are padded.
func (r *reader) endAt(length int) { r.b = r.b[:min(r.at+length, len(r.b))] }

// stopAt ends the dissection at a header that is truncated or malformed.
func (r *reader) stopAt(name string, err error) step {
	problem := "malformed header"
	if isShort(err) {
		problem = "truncated: the captured bytes end inside this header"
	}
	r.layers = append(r.layers, Layer{Name: name, Offset: r.at, Size: len(r.b) - r.at, Problem: problem})
	r.at = len(r.b)
	return nil
}

// field formats a value; offset and size are those of its bytes in the header.
func field(name string, offset, size int, format string, args ...any) Field {
	return Field{Name: name, Value: fmt.Sprintf(format, args...), Offset: offset, Size: size}
}

func ethernet(r *reader) step {
	var h packet.Ethernet
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("Ethernet", err)
	}
	r.addLayer("Ethernet", n,
		field("destination", 0, 6, "%s", h.Dst), field("source", 6, 6, "%s", h.Src),
		field("type", 12, 2, "%s", etherName(h.Type)))
	return byEtherType(h.Type)
}

func vlan(r *reader) step {
	var h packet.VLAN
	n, err := h.Parse(r.rest())
	if err != nil {
		return r.stopAt("VLAN", err)
	}
	r.addLayer("VLAN", n,
		field("priority", 0, 1, "%d", h.PCP), field("drop eligible", 0, 1, "%t", h.DEI),
		field("id", 0, 2, "%d", h.ID), field("type", 2, 2, "%s", etherName(h.Type)))
	return byEtherType(h.Type)
}

var etherNames = map[uint16]string{
	packet.TypeIPv4: "IPv4", packet.TypeARP: "ARP", packet.TypeBridged: "Ethernet", packet.TypePoll: "poll",
	packet.TypeVLAN: "VLAN", packet.TypeIPv6: "IPv6", packet.TypeMACControl: "MAC control",
	packet.TypeQinQ: "802.1ad VLAN",
}

func etherName(t uint16) string {
	if n, ok := etherNames[t]; ok {
		return fmt.Sprintf("0x%04x (%s)", t, n)
	}
	return fmt.Sprintf("0x%04x", t)
}

func byEtherType(t uint16) step {
	switch t {
	case packet.TypeVLAN, packet.TypeQinQ:
		return vlan
	case packet.TypeIPv4:
		return ipv4
	case packet.TypeIPv6:
		return ipv6
	case packet.TypeBridged:
		return ethernet
	}
	return nil
}

func protoName(p model.Proto) string { return fmt.Sprintf("%d (%s)", uint8(p), p) }
