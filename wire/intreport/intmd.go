package intreport

import "encoding/binary"

// Sizes of the INT-MD headers.
const (
	ShimSize     = 4
	MDHeaderSize = 12
)

// Shim types.
const (
	ShimMD          = 1 // INT-MD: instructions and metadata
	ShimDestination = 2
	ShimMX          = 3 // INT-MX: instructions only
)

// Contents of Shim.Next.
const (
	NextDSCP  = 0 // the original DSCP in its bits 7 to 2, if anything
	NextPort  = 1 // the original UDP destination port
	NextProto = 2 // the original IP protocol, in its low byte
)

// Shim is the header between a TCP or UDP header and INT.
type Shim struct {
	Type     uint8 // 4 bits
	NextType uint8 // 2 bits: what Next holds
	Reserved uint8 // 2 bits, preserved
	Length   uint8 // of INT, in words, the shim not counted
	Next     uint16
}

// AppendTo appends the encoded shim. Fields are cut to their widths.
func (s Shim) AppendTo(b []byte) []byte {
	b = append(b, s.Type<<4|s.NextType&3<<2|s.Reserved&3, s.Length)
	return binary.BigEndian.AppendUint16(b, s.Next)
}

// Parse decodes the shim at the start of b.
func (s *Shim) Parse(b []byte) (int, error) {
	*s = Shim{}
	if len(b) < ShimSize {
		return 0, ErrShort
	}
	*s = Shim{b[0] >> 4, b[0] >> 2 & 3, b[0] & 3, b[1], binary.BigEndian.Uint16(b[2:])}
	return ShimSize, nil
}

// MDHeader is INT-MD's instructions: what each hop adds.
type MDHeader struct {
	Discard       bool   // a copy, to be discarded after the INT domain
	HopsExceeded  bool   // a hop added nothing because RemainingHops was 0
	MTUExceeded   bool   // a hop added nothing because the packet would not fit
	Reserved      uint16 // 12 bits, preserved
	HopWords      uint8  // 5 bits: words that each hop adds
	RemainingHops uint8
	Bits          Bits
	Domain        uint16
	DSBits        uint16
	DSFlags       uint16
}

// AppendTo appends the encoded header. Fields are cut to their widths.
func (h MDHeader) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	w := uint32(Version)<<28 | uint32(h.Reserved&0xfff)<<13 | uint32(h.HopWords&0x1f)<<8 | uint32(h.RemainingHops)
	for i, set := range [...]bool{h.Discard, h.HopsExceeded, h.MTUExceeded} {
		if set {
			w |= 1 << (27 - i)
		}
	}
	b = be.AppendUint32(b, w)
	b = be.AppendUint16(b, uint16(h.Bits))
	b = be.AppendUint16(b, h.Domain)
	b = be.AppendUint16(b, h.DSBits)
	return be.AppendUint16(b, h.DSFlags)
}

// Parse decodes the header at the start of b.
func (h *MDHeader) Parse(b []byte) (int, error) {
	*h = MDHeader{}
	if len(b) < MDHeaderSize {
		return 0, ErrShort
	}
	be := binary.BigEndian
	w := be.Uint32(b)
	if w>>28 != Version {
		return 0, ErrVersion
	}
	*h = MDHeader{
		Discard: w>>27&1 == 1, HopsExceeded: w>>26&1 == 1, MTUExceeded: w>>25&1 == 1,
		Reserved: uint16(w >> 13 & 0xfff), HopWords: uint8(w >> 8 & 0x1f), RemainingHops: uint8(w),
		Bits: Bits(be.Uint16(b[4:])), Domain: be.Uint16(b[6:]), DSBits: be.Uint16(b[8:]), DSFlags: be.Uint16(b[10:]),
	}
	return MDHeaderSize, nil
}

// Hop is the metadata that one hop added to a packet. DS aliases the parsed
// bytes.
type Hop struct {
	Metadata
	DS []byte // domain-specific metadata, whole words
}

// Parse decodes b, the metadata that one hop added under the given
// instructions. Unlike in a report, the domain-specific metadata precedes the
// value of BitLast, which must be the last word: it corrects the checksum over
// the others.
func (h *Hop) Parse(announced Bits, b []byte) (int, error) {
	*h = Hop{}
	if len(b) < announced.Size() || len(b)%4 != 0 {
		return 0, ErrMetadata
	}
	n, _ := h.Metadata.Parse(announced&^BitLast, b)
	end := len(b)
	if announced&BitLast != 0 {
		end -= 4
		var last Metadata
		_, _ = last.Parse(BitLast, b[end:])
		h.Bits, h.Missing, h.Last = announced, h.Missing|last.Missing, last.Last
	}
	h.DS = b[n:end:end]
	return len(b), nil
}

// AppendTo appends the encoded hop. DS is cut to whole words.
func (h Hop) AppendTo(b []byte) []byte {
	last := h.Metadata
	last.Bits &= BitLast
	h.Bits &^= BitLast
	b = h.Metadata.AppendTo(b)
	b = append(b, h.DS[:len(h.DS)&^3]...)
	return last.AppendTo(b)
}

// Stack is INT-MD in a packet: shim, instructions, and the metadata that the
// hops added, newest first. Hops and Source alias the parsed bytes.
type Stack struct {
	Shim   Shim // Length is computed when encoding
	Header MDHeader
	Hops   []byte // HopWords words for each hop
	// Source is domain-specific metadata that only the first hop added, after its
	// own. It must be shorter than what a hop adds: a longer one cannot be
	// distinguished from a further hop.
	Source []byte
}

// Parse decodes the stack at the start of b.
func (s *Stack) Parse(b []byte) (int, error) {
	*s = Stack{}
	var v Stack
	if _, err := v.Shim.Parse(b); err != nil {
		return 0, err
	}
	if v.Shim.Type != ShimMD {
		return 0, ErrType
	}
	end := ShimSize + 4*int(v.Shim.Length)
	if len(b) < end {
		return 0, ErrShort
	}
	n, err := v.Header.Parse(b[ShimSize:end])
	if err != nil {
		return 0, err
	}
	added := b[ShimSize+n : end : end]
	each := 4 * int(v.Header.HopWords)
	if v.Header.Bits.Size() > each {
		return 0, ErrMetadata
	}
	whole := 0
	if each > 0 {
		whole = len(added) / each * each
	}
	v.Hops, v.Source = added[:whole:whole], added[whole:]
	if len(v.Source) > 0 && (each == 0 || v.Header.DSBits == 0) {
		return 0, ErrMetadata
	}
	*s = v
	return end, nil
}

// Len returns the number of hops.
func (s Stack) Len() int {
	if s.Header.HopWords == 0 {
		return 0
	}
	return len(s.Hops) / (4 * int(s.Header.HopWords))
}

// Hop returns the metadata of the i-th newest hop. It panics unless 0 ≤ i <
// Len.
func (s Stack) Hop(i int) (h Hop) {
	each := 4 * int(s.Header.HopWords)
	_, _ = h.Parse(s.Header.Bits, s.Hops[i*each:(i+1)*each]) // Parse of the stack checked the size
	return h
}

// AppendTo appends the encoded stack. Hops and Source are cut to whole words
// and to the 255 words that the shim can state.
func (s Stack) AppendTo(b []byte) []byte {
	start := len(b)
	b = s.Shim.AppendTo(b)
	b = s.Header.AppendTo(b)
	for _, part := range [...][]byte{s.Hops, s.Source} {
		space := start + ShimSize + 4*0xff - len(b)
		b = append(b, part[:min(len(part)&^3, space)]...)
	}
	b[start+1] = byte((len(b) - start - ShimSize) / 4)
	return b
}
