package packet

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/checksum"
)

// TCP is a TCP header with its options.
type TCP struct {
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint16 // 12 bits: three reserved, NS, then the byte TCPFlags names
	Window           uint16
	Checksum         uint16
	Urgent           uint16
	Options          []byte // aliases the input of Parse; padded to four bytes, at most 40
}

// TCPFlags is the low byte of a TCP header's flags.
type TCPFlags uint8

// The flags, from the lowest bit.
const (
	FIN TCPFlags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// TCPSize is the length of a header without options.
const TCPSize = 20

// AppendTo appends the encoded header.
func (h TCP) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	opts := h.Options[:min(len(h.Options)&^3, 40)]
	b = be.AppendUint16(b, h.SrcPort)
	b = be.AppendUint16(b, h.DstPort)
	b = be.AppendUint32(b, h.Seq)
	b = be.AppendUint32(b, h.Ack)
	b = be.AppendUint16(b, uint16(TCPSize+len(opts))/4<<12|h.Flags&0xfff)
	b = be.AppendUint16(b, h.Window)
	b = be.AppendUint16(b, h.Checksum)
	b = be.AppendUint16(b, h.Urgent)
	return append(b, opts...)
}

// Parse decodes the header at the start of b and returns its length.
func (h *TCP) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*h = TCP{}
	if len(b) < TCPSize {
		return 0, ErrShort
	}
	flags := be.Uint16(b[12:])
	size := int(flags>>12) * 4
	if size < TCPSize {
		return 0, ErrHeader
	}
	if len(b) < size {
		return 0, ErrShort
	}
	*h = TCP{
		SrcPort: be.Uint16(b), DstPort: be.Uint16(b[2:]),
		Seq: be.Uint32(b[4:]), Ack: be.Uint32(b[8:]),
		Flags: flags & 0xfff, Window: be.Uint16(b[14:]),
		Checksum: be.Uint16(b[16:]), Urgent: be.Uint16(b[18:]),
	}
	if size > TCPSize {
		h.Options = b[TCPSize:size:size]
	}
	return size, nil
}

// UDP is a UDP header.
type UDP struct {
	SrcPort, DstPort uint16
	Length           uint16 // header and payload
	Checksum         uint16 // 0 means none, in IPv4
}

// UDPSize is the length of an encoded UDP header.
const UDPSize = 8

// AppendTo appends the encoded header.
func (h UDP) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, h.SrcPort)
	b = be.AppendUint16(b, h.DstPort)
	b = be.AppendUint16(b, h.Length)
	return be.AppendUint16(b, h.Checksum)
}

// Parse decodes the header at the start of b and returns its length.
func (h *UDP) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*h = UDP{}
	if len(b) < UDPSize {
		return 0, ErrShort
	}
	*h = UDP{be.Uint16(b), be.Uint16(b[2:]), be.Uint16(b[4:]), be.Uint16(b[6:])}
	return UDPSize, nil
}

// ICMP is the part that all ICMP and ICMPv6 messages share.
type ICMP struct {
	Type, Code uint8
	Checksum   uint16
	Rest       uint32 // identifier and sequence in an echo; else as the type says
}

// ICMPSize is the length of an encoded ICMP header.
const ICMPSize = 8

// AppendTo appends the encoded header.
func (h ICMP) AppendTo(b []byte) []byte {
	b = append(b, h.Type, h.Code)
	b = binary.BigEndian.AppendUint16(b, h.Checksum)
	return binary.BigEndian.AppendUint32(b, h.Rest)
}

// Parse decodes the header at the start of b and returns its length.
func (h *ICMP) Parse(b []byte) (int, error) {
	*h = ICMP{}
	if len(b) < ICMPSize {
		return 0, ErrShort
	}
	*h = ICMP{b[0], b[1], binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:])}
	return ICMPSize, nil
}

// TransportChecksum returns the checksum of a TCP, UDP or ICMPv6 segment under
// the pseudo-header of its addresses. The segment's own checksum field must be
// zero; over a correct segment with its checksum the result is 0. (UDP writes a
// computed 0 as 0xffff.)
func TransportChecksum(src, dst model.Addr, v6 bool, proto model.Proto, segment []byte) uint16 {
	be := binary.BigEndian
	var pseudo [40]byte
	if v6 {
		be.PutUint64(pseudo[0:], src.Hi)
		be.PutUint64(pseudo[8:], src.Lo)
		be.PutUint64(pseudo[16:], dst.Hi)
		be.PutUint64(pseudo[24:], dst.Lo)
	} else {
		be.PutUint32(pseudo[0:], src.V4())
		be.PutUint32(pseudo[4:], dst.V4())
	}
	be.PutUint32(pseudo[32:], uint32(len(segment)))
	be.PutUint32(pseudo[36:], uint32(proto))
	return checksum.Sum(0).Add(pseudo[:]).Add(segment).Fold()
}
