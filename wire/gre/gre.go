// Package gre encodes and decodes GRE headers (RFC 2784, RFC 2890), which lie
// between an outer IP header and a tunnelled packet (wire/packet) or a mirrored
// frame (wire/erspan). Layout: docs/formats/gre.md.
package gre

import (
	"encoding/binary"
	"errors"
)

// BaseSize is the length of the part that every header has; each optional
// field adds four bytes.
const BaseSize = 4

// Errors of Parse.
var (
	ErrShort  = errors.New("gre: short header")
	ErrHeader = errors.New("gre: version or routing field not supported")
)

// Flags of the first 16 bits.
const (
	hasChecksum = 0x8000
	hasRouting  = 0x4000 // RFC 1701, obsolete; variable length
	hasKey      = 0x2000
	hasSeq      = 0x1000
	version     = 0x0007 // 1 is PPTP's
	otherFlags  = ^uint16(hasChecksum | hasKey | hasSeq)
	refused     = hasRouting | version // the payload's offset would be a guess
)

// Header is a GRE header. Optional fields are on the wire when their Has flag
// is set. The checksum is neither verified nor computed: the outer frame
// protects the header, and the payload has its own checksums.
type Header struct {
	Protocol                    uint16 // EtherType of the payload
	HasChecksum, HasKey, HasSeq bool
	Flags                       uint16 // the other bits of the first 16; preserved
	Checksum, Reserved1         uint16
	Key, Seq                    uint32
}

// Size is the length of the encoded header.
func (h Header) Size() int {
	n := BaseSize
	for _, has := range [...]bool{h.HasChecksum, h.HasKey, h.HasSeq} {
		if has {
			n += 4
		}
	}
	return n
}

// AppendTo appends the header with its optional fields. Flags that Parse would
// reject are omitted.
func (h Header) AppendTo(b []byte) []byte {
	be := binary.BigEndian
	h.Flags &^= refused
	b = h.AppendBase(b)
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

// AppendBase appends the first four bytes alone.
func (h Header) AppendBase(b []byte) []byte {
	flags := h.Flags & otherFlags
	if h.HasChecksum {
		flags |= hasChecksum
	}
	if h.HasKey {
		flags |= hasKey
	}
	if h.HasSeq {
		flags |= hasSeq
	}
	b = binary.BigEndian.AppendUint16(b, flags)
	return binary.BigEndian.AppendUint16(b, h.Protocol)
}

// Parse decodes the header at the start of b and returns its length.
func (h *Header) Parse(b []byte) (int, error) {
	be := binary.BigEndian
	var g Header
	*h = g
	if err := g.ParseBase(b); err != nil {
		return 0, err
	}
	if g.Flags&refused != 0 {
		return 0, ErrHeader
	}
	size := g.Size()
	if len(b) < size {
		return 0, ErrShort
	}
	b = b[BaseSize:]
	if g.HasChecksum {
		g.Checksum, g.Reserved1 = be.Uint16(b), be.Uint16(b[2:])
		b = b[4:]
	}
	if g.HasKey {
		g.Key = be.Uint32(b)
		b = b[4:]
	}
	if g.HasSeq {
		g.Seq = be.Uint32(b)
	}
	*h = g
	return size, nil
}

// ParseBase decodes the first four bytes alone, for senders whose flags
// announce fields that do not follow.
func (h *Header) ParseBase(b []byte) error {
	*h = Header{}
	if len(b) < BaseSize {
		return ErrShort
	}
	flags := binary.BigEndian.Uint16(b)
	*h = Header{
		Protocol:    binary.BigEndian.Uint16(b[2:]),
		HasChecksum: flags&hasChecksum != 0,
		HasKey:      flags&hasKey != 0,
		HasSeq:      flags&hasSeq != 0,
		Flags:       flags & otherFlags,
	}
	return nil
}
