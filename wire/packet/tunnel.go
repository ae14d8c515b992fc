package packet

import "encoding/binary"

// GRE is a GRE header (RFC 2784, RFC 2890). Optional fields are on the wire
// when their Has flag is set.
type GRE struct {
	HasChecksum, HasKey, HasSeq bool
	Type                        uint16 // EtherType of the payload
	Checksum                    uint16
	Reserved1                   uint16 // follows the checksum on the wire
	Key, Seq                    uint32
}

const (
	greChecksum = 1 << 15
	greKey      = 1 << 13
	greSeq      = 1 << 12
	greKnown    = greChecksum | greKey | greSeq
)

// Size is the length of the encoded header.
func (h GRE) Size() int {
	n := 4
	for _, has := range [...]bool{h.HasChecksum, h.HasKey, h.HasSeq} {
		if has {
			n += 4
		}
	}
	return n
}

// AppendTo appends the encoded header.
func (h GRE) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	flags := uint16(0)
	if h.HasChecksum {
		flags |= greChecksum
	}
	if h.HasKey {
		flags |= greKey
	}
	if h.HasSeq {
		flags |= greSeq
	}
	b = be.AppendUint16(b, flags)
	b = be.AppendUint16(b, h.Type)
	if h.HasChecksum {
		b = be.AppendUint16(b, h.Checksum)
		b = be.AppendUint16(b, h.Reserved1)
	}
	if h.HasKey {
		b = be.AppendUint32(b, h.Key)
	}
	if h.HasSeq {
		b = be.AppendUint32(b, h.Seq)
	}
	return b
}

// Parse decodes the header at the start of b and returns its length. Routing
// (RFC 1701), other versions (PPTP) and reserved flags are refused: where the
// payload begins would be a guess.
func (h *GRE) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	*h = GRE{}
	if len(b) < 4 {
		return 0, ErrShort
	}
	flags := be.Uint16(b)
	if flags&^greKnown != 0 {
		return 0, ErrHeader
	}
	g := GRE{
		HasChecksum: flags&greChecksum != 0, HasKey: flags&greKey != 0, HasSeq: flags&greSeq != 0,
		Type: be.Uint16(b[2:]),
	}
	size := g.Size()
	if len(b) < size {
		return 0, ErrShort
	}
	at := 4
	if g.HasChecksum {
		g.Checksum, g.Reserved1 = be.Uint16(b[at:]), be.Uint16(b[at+2:])
		at += 4
	}
	if g.HasKey {
		g.Key = be.Uint32(b[at:])
		at += 4
	}
	if g.HasSeq {
		g.Seq = be.Uint32(b[at:])
	}
	*h = g
	return size, nil
}

// VXLAN is the header between UDP and an inner Ethernet frame (RFC 7348).
type VXLAN struct {
	Flags     uint8  // 0x08: the VNI is valid
	Reserved1 uint32 // 24 bits; group policy and other extensions live here
	VNI       uint32 // 24 bits; higher ones are cut off
	Reserved2 uint8
}

const (
	// VXLANSize is the length of an encoded VXLAN header.
	VXLANSize = 8
	// VXLANPort is the UDP port of VXLAN.
	VXLANPort = 4789
)

// AppendTo appends the encoded header.
func (h VXLAN) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(h.Flags)<<24|h.Reserved1&0xffffff)
	return binary.BigEndian.AppendUint32(b, h.VNI<<8|uint32(h.Reserved2))
}

// Parse decodes the header at the start of b and returns its length.
func (h *VXLAN) Parse(b []byte) (int, error) {
	*h = VXLAN{}
	if len(b) < VXLANSize {
		return 0, ErrShort
	}
	first, second := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	*h = VXLAN{uint8(first >> 24), first & 0xffffff, second >> 8, uint8(second)}
	return VXLANSize, nil
}
