package packet

import "encoding/binary"

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
