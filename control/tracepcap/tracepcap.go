// Package tracepcap writes traces as pcapng, for Wireshark and similar tools: an
// interface for each switch, a frame for each hop, and a comment on each frame
// with the hop number and the fate of the packet.
// Manual: docs/traces.md.
package tracepcap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/wire/checksum"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Writer writes traces into one file.
type Writer struct {
	to    io.Writer
	about string
	ng    *pcapgo.NgWriter
	ids   map[string]int // interfaces by switch
	n     int            // traces
}

// NewWriter makes a writer. About is the comment on the whole file.
func NewWriter(to io.Writer, about string) *Writer {
	return &Writer{to: to, about: about, ids: map[string]int{}}
}

// Write adds a trace, in the order of its path. Only one frame of a packet is kept;
// TTL, DSCP and ECN are set as each switch saw them, and everything else is as the
// first switch saw it. Where a switch saw the packet in another number of tunnels
// than that frame has, nothing is set. Comments say so.
func (w *Writer) Write(t *record.Trace) error {
	w.n++
	var p packet.Packet
	_ = p.Parse(t.Frame) // what is not IP has no TTL to put in
	for i := range t.Hops {
		h := &t.Hops[i]
		id, err := w.interfaceID(h.Switch)
		if err != nil {
			return err
		}
		comment := fmt.Sprintf("trace %d, hop %d of %d: %s, in port %d, out port %d, TTL %d; ", w.n, i+1, len(t.Hops), h.Switch, h.In, h.Out, h.TTL)
		frame := t.Frame
		switch {
		case h.Depth == p.Depth && p.Depth > 0:
			frame = frameAtHop(t.Frame, &p, h)
			comment += "TTL, DSCP and ECN as seen here, all else as seen first"
		case h.Depth > p.Depth:
			comment += fmt.Sprintf("as seen first; here under %d IP headers", h.Depth)
		default:
			comment += "as seen first"
		}
		if i == len(t.Hops)-1 {
			comment += "; mirrored for " + t.Why + "; end: " + t.End
		}
		info := gopacket.CaptureInfo{Timestamp: h.Time, CaptureLength: len(frame), Length: max(wireLength(&p), len(frame)), InterfaceIndex: id}
		if err := w.ng.WritePacketWithOptions(info, frame, pcapgo.NgPacketOptions{Comments: []string{comment}}); err != nil {
			return fmt.Errorf("trace of %v: %w", t.Flow, err)
		}
	}
	return nil
}

// Flush writes what is buffered. A file without traces is a valid one.
func (w *Writer) Flush() error {
	if w.ng == nil {
		if _, err := w.interfaceID("none"); err != nil {
			return err
		}
	}
	return w.ng.Flush()
}

// interfaceID is the interface of a switch.
func (w *Writer) interfaceID(name string) (id int, err error) {
	id, known := w.ids[name]
	if known {
		return id, nil
	}
	of := pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9}
	if w.ng == nil {
		w.ng, err = pcapgo.NewNgWriterInterface(w.to, of, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "weft", Comment: w.about}})
	} else {
		id, err = w.ng.AddInterface(of)
	}
	w.ids[name] = id
	return id, err
}

// wireLength is how long the frame was before it was cut, by its first IP header.
func wireLength(p *packet.Packet) int {
	if p.Depth == 0 {
		return 0
	}
	return int(p.Outer.Start + p.Outer.Length)
}

// frameAtHop is the frame with a hop's TTL and traffic class in its first IP header.
func frameAtHop(frame []byte, p *packet.Packet, h *record.TraceHop) []byte {
	frame = bytes.Clone(frame)
	ip := frame[p.Outer.Start:]
	class := h.DSCP<<2 | h.ECN&3
	if p.Outer.Key.V6 {
		ip[0], ip[1] = ip[0]&0xf0|class>>4, class<<4|ip[1]&0xf
		ip[7] = h.TTL
		return frame
	}
	ip[1], ip[8] = class, h.TTL
	head := ip[:min(int(ip[0]&0xf)*4, len(ip))]
	head[10], head[11] = 0, 0
	binary.BigEndian.PutUint16(head[10:], checksum.Of(head))
	return frame
}
