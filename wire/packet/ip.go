package packet

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/roce"
)

// parse reads the IP packet at offset at of frame b. h must be zero.
func (h *IP) parse(b []byte, at int, v6 bool) error {
	if v6 {
		return h.parse6(b, at)
	}
	return h.parse4(b, at)
}

func (h *IP) parse4(b []byte, at int) error {
	be := binary.BigEndian
	p := b[at:]
	if len(p) < IPv4Size {
		return ErrShort
	}
	size := int(p[0]&0xf) * 4
	length := int(be.Uint16(p[2:]))
	if length == 0 {
		// With segmentation offload a host captures a length of 0; the frame's
		// end is the packet's.
		length = len(p)
	}
	if p[0]>>4 != 4 || size < IPv4Size || length < size {
		return ErrHeader
	}
	if len(p) < size {
		return ErrShort
	}
	if length > len(p) {
		h.Flags = Truncated
	} else {
		p = p[:length] // what follows is Ethernet padding
	}
	proto := model.Proto(p[9])
	h.Key.Src, h.Key.Dst = model.Addr4(be.Uint32(p[12:])), model.Addr4(be.Uint32(p[16:]))
	h.Key.Proto = proto
	h.Start, h.Length = uint32(at), uint32(length)
	h.ID = uint32(be.Uint16(p[4:]))
	h.TOS, h.TTL = p[1], p[8]
	frag := be.Uint16(p[6:])
	if proto == label.Proto {
		n, err := h.skipLabels(p[size:])
		if err != nil {
			h.markUnread(p, at, size, err)
			return nil
		}
		size += n
	}
	if frag&(MoreFragments<<13|0x1fff) != 0 {
		h.Flags |= Fragment
		if frag&0x1fff != 0 {
			h.Flags |= NoPorts
			h.Transport, h.Payload = uint32(at+size), uint32(at+size)
			return nil
		}
	}
	h.parseTransport(p[size:], at+size)
	return nil
}

func (h *IP) parse6(b []byte, at int) error {
	be := binary.BigEndian
	p := b[at:]
	if len(p) < IPv6Size {
		return ErrShort
	}
	if p[0]>>4 != 6 {
		return ErrHeader
	}
	length := IPv6Size + int(be.Uint16(p[4:]))
	if length == IPv6Size && p[6] != noNext {
		length = len(p) // as for IPv4; a jumbogram has 0 too
	}
	if length > len(p) {
		h.Flags = Truncated
	} else {
		p = p[:length]
	}
	h.Key = model.FlowKey{
		Src: model.Addr{Hi: be.Uint64(p[8:]), Lo: be.Uint64(p[16:])},
		Dst: model.Addr{Hi: be.Uint64(p[24:]), Lo: be.Uint64(p[32:])},
		V6:  true, Proto: model.Proto(p[6]),
	}
	h.Start, h.Length = uint32(at), uint32(length)
	h.TOS, h.TTL = uint8(be.Uint16(p)>>4), p[7]
	size := IPv6Size
	if h.Key.Proto == label.Proto {
		n, err := h.skipLabels(p[size:])
		if err != nil {
			h.markUnread(p, at, size, err)
			return nil
		}
		size += n
	}
	for range maxExtensions {
		n, known, err := h.skipExtension(p[size:])
		if err != nil {
			h.markUnread(p, at, size, err)
			return nil
		}
		if !known {
			h.parseTransport(p[size:], at+size)
			return nil
		}
		size += n
		if h.Flags.Has(NoPorts) {
			// A later fragment: what follows is not a header.
			h.Transport, h.Payload = uint32(at+size), uint32(at+size)
			return nil
		}
	}
	h.Flags |= TooDeep | NoPorts
	h.Transport, h.Payload = uint32(at+size), uint32(at+size)
	return nil
}

// skipLabels skips an INT-label block and puts the protocol it replaced into
// the key, so that a labelled packet has the key of the original packet.
// Packets of other experiments under the same protocol number are left
// unchanged.
func (h *IP) skipLabels(p []byte) (int, error) {
	var opt label.Option
	if _, err := opt.Parse(p); err == label.ErrBlock {
		return 0, nil
	}
	if opt.Num == 0 || len(p) < opt.BlockSize() {
		return 0, ErrShort
	}
	h.Key.Proto = opt.NextHeader
	h.Flags |= Labelled
	return opt.BlockSize(), nil
}

// skipExtension skips one IPv6 extension header; known is false at the
// transport header.
func (h *IP) skipExtension(p []byte) (n int, known bool, err error) {
	switch h.Key.Proto {
	case hopByHop, routing, destOptions, authHeader, fragment:
	default:
		return 0, false, nil
	}
	if len(p) < 8 {
		return 0, true, ErrShort
	}
	switch h.Key.Proto {
	case fragment:
		n = 8
		off := binary.BigEndian.Uint16(p[2:])
		h.ID = binary.BigEndian.Uint32(p[4:])
		if off&^6 != 0 { // an atomic fragment (RFC 6946) is a whole packet
			h.Flags |= Fragment
		}
		if off>>3 != 0 {
			h.Flags |= NoPorts
		}
	case authHeader:
		n = (int(p[1]) + 2) * 4
	default:
		n = (int(p[1]) + 1) * 8
	}
	if len(p) < n {
		return 0, true, ErrShort
	}
	h.Key.Proto = model.Proto(p[0])
	return n, true, nil
}

// markUnread ends the parsing of an IP packet whose rest cannot be parsed.
func (h *IP) markUnread(p []byte, at, size int, err error) {
	h.Flags |= NoPorts | flagFor(h, err)
	h.Transport, h.Payload = uint32(at+size), uint32(at+len(p))
}

// parseTransport parses the transport header: p is the packet from it on, at
// offset at of the frame.
func (h *IP) parseTransport(p []byte, at int) {
	be := binary.BigEndian
	h.Transport, h.Payload = uint32(at), uint32(at)
	switch h.Key.Proto {
	case model.TCP:
		if len(p) < TCPSize {
			h.parseTruncatedTransport(p, at)
			return
		}
		h.Key.SrcPort, h.Key.DstPort = be.Uint16(p), be.Uint16(p[2:])
		h.Seq = be.Uint32(p[4:])
		h.TCPFlags = TCPFlags(p[13])
		size := int(p[12]>>4) * 4
		if size < TCPSize {
			h.Flags |= Malformed
			size = TCPSize
		}
		h.Payload = uint32(at + min(size, len(p)))
	case model.UDP:
		if len(p) < UDPSize {
			h.parseTruncatedTransport(p, at)
			return
		}
		h.Key.SrcPort, h.Key.DstPort = be.Uint16(p), be.Uint16(p[2:])
		h.Payload = uint32(at + UDPSize)
		if h.Key.DstPort == roce.Port {
			h.parseRoCE(p[UDPSize:])
		}
	case model.ICMP, model.ICMPv6:
		if len(p) < 2 {
			h.parseTruncatedTransport(p, at)
			return
		}
		h.Type, h.Code = p[0], p[1]
		h.Payload = uint32(at + min(ICMPSize, len(p)))
	}
}

// parseTruncatedTransport parses the start of a transport header that was
// truncated: the ports come first.
func (h *IP) parseTruncatedTransport(p []byte, at int) {
	h.Flags |= flagFor(h, ErrShort)
	h.Payload = uint32(at + len(p))
	if h.Key.Proto != model.TCP && h.Key.Proto != model.UDP {
		return
	}
	if len(p) < 4 {
		h.Flags |= NoPorts
		return
	}
	h.Key.SrcPort, h.Key.DstPort = binary.BigEndian.Uint16(p), binary.BigEndian.Uint16(p[2:])
	if h.Key.Proto == model.TCP && len(p) >= 8 {
		h.Seq = binary.BigEndian.Uint32(p[4:])
	}
	if h.Key.Proto == model.TCP && len(p) >= 14 {
		h.TCPFlags = TCPFlags(p[13])
	}
}

func (h *IP) parseRoCE(p []byte) {
	var bth roce.BTH
	n, err := bth.Parse(p)
	if err != nil {
		h.Flags |= flagFor(h, ErrShort)
		return
	}
	h.Flags |= RoCE
	h.Type, h.QP, h.Seq = uint8(bth.Opcode), uint32(bth.DestQP), uint32(bth.PSN)
	h.Payload += uint32(n)
}
