package api

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/model/record"
)

// capture writes a packet's way as a pcapng file: one interface for each switch
// and one frame for each hop, with what the hop said of TTL and DSCP put in.
// All else in the frames is as the first switch saw it, and the comments say so.
func capture(t *record.Trace) ([]byte, error) {
	if len(t.Frame) == 0 {
		return nil, fmt.Errorf("trace %d: no bytes of the packet were kept: %w", t.ID, ErrNotFound)
	}
	if len(t.Hops) == 0 {
		return nil, fmt.Errorf("trace %d: no hop was kept: %w", t.ID, ErrNotFound)
	}
	var b bytes.Buffer
	of := func(sw string) pcapgo.NgInterface {
		return pcapgo.NgInterface{Name: sw, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9}
	}
	w, err := pcapgo.NewNgWriterInterface(&b, of(t.Hops[0].Switch), pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
		Application: "weft", Comment: fmt.Sprintf("%s, mirrored and kept because: %s; end: %s", t.Flow, t.Why, t.End),
	}})
	if err != nil {
		return nil, err
	}
	ids := map[string]int{t.Hops[0].Switch: 0}
	for i := range t.Hops {
		h := &t.Hops[i]
		id, known := ids[h.Switch]
		if !known {
			if id, err = w.AddInterface(of(h.Switch)); err != nil {
				return nil, err
			}
			ids[h.Switch] = id
		}
		frame := asSeen(t.Frame, h)
		info := gopacket.CaptureInfo{Timestamp: h.Time, CaptureLength: len(frame), Length: len(frame), InterfaceIndex: id}
		comment := fmt.Sprintf("hop %d of %d: %s, in port %d, out port %d; TTL, DSCP and ECN as seen here, all else as seen first",
			i+1, len(t.Hops), h.Switch, h.In, h.Out)
		if i == len(t.Hops)-1 {
			comment += "; end: " + t.End
		}
		if err := w.WritePacketWithOptions(info, frame, pcapgo.NgPacketOptions{Comments: []string{comment}}); err != nil {
			return nil, err
		}
	}
	err = w.Flush()
	return b.Bytes(), err
}

// asSeen is the frame with a hop's TTL and traffic class in its outer IP header.
// A frame that is no IP, or ends before, stays as it is.
func asSeen(frame []byte, h *record.TraceHop) []byte {
	frame = bytes.Clone(frame)
	if len(frame) < 14 {
		return frame
	}
	at, kind := 14, binary.BigEndian.Uint16(frame[12:])
	if kind == 0x8100 && len(frame) >= 18 {
		at, kind = 18, binary.BigEndian.Uint16(frame[16:])
	}
	ip := frame[at:]
	class := h.DSCP<<2 | h.ECN&3
	switch {
	case kind == 0x0800 && len(ip) >= 20 && ip[0] == 0x45:
		ip[1], ip[8] = class, h.TTL
		ip[10], ip[11] = 0, 0
		var sum uint32
		for i := 0; i < 20; i += 2 {
			sum += uint32(binary.BigEndian.Uint16(ip[i:]))
		}
		sum = sum>>16 + sum&0xffff
		sum += sum >> 16
		binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	case kind == 0x86dd && len(ip) >= 40 && ip[0]>>4 == 6:
		ip[0], ip[1] = 0x60|class>>4, class<<4|ip[1]&0xf
		ip[7] = h.TTL
	}
	return frame
}
