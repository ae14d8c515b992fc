package erspan

import "encoding/binary"

// Flags of a GRE header.
const (
	hasChecksum = 0x8000
	hasKey      = 0x2000
	hasSeq      = 0x1000
	hasRouting  = 0x4000 // RFC 1701; of variable length, long gone
	greVersion  = 0x0007
	otherFlags  = ^uint16(hasChecksum | hasKey | hasSeq)
)

// GRE is the header that announces the mirror. Its checksum is neither
// verified nor computed: outer Ethernet and IP protect the headers, and the
// frame has checksums of its own.
type GRE struct {
	Protocol                    uint16
	HasChecksum, HasKey, HasSeq bool
	Flags                       uint16 // the other flags as they stand in the header's first 16 bits; kept
	Checksum, Reserved1         uint16
	Key                         uint32
	Seq                         uint32 // counts the mirrors of a session
}

// parseBase reads the 4 bytes that every GRE header has.
func (g *GRE) parseBase(b []byte) {
	flags := binary.BigEndian.Uint16(b)
	*g = GRE{
		Protocol:    binary.BigEndian.Uint16(b[2:]),
		HasChecksum: flags&hasChecksum != 0,
		HasKey:      flags&hasKey != 0,
		HasSeq:      flags&hasSeq != 0,
		Flags:       flags & otherFlags,
	}
}

// parse reads a header with its optional fields.
func (g *GRE) parse(b []byte) (int, error) {
	be := binary.BigEndian
	if len(b) < greSize {
		return 0, ErrShort
	}
	g.parseBase(b)
	if g.Flags&(hasRouting|greVersion) != 0 {
		return 0, ErrGRE
	}
	n := greSize
	for _, has := range [...]bool{g.HasChecksum, g.HasKey, g.HasSeq} {
		if has {
			n += 4
		}
	}
	if len(b) < n {
		return 0, ErrShort
	}
	b = b[greSize:]
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
	return n, nil
}

// appendBase appends the first 4 bytes.
func (g GRE) appendBase(b []byte) []byte {
	flags := g.Flags & otherFlags
	if g.HasChecksum {
		flags |= hasChecksum
	}
	if g.HasKey {
		flags |= hasKey
	}
	if g.HasSeq {
		flags |= hasSeq
	}
	b = binary.BigEndian.AppendUint16(b, flags)
	return binary.BigEndian.AppendUint16(b, g.Protocol)
}

// appendTo appends the header with its optional fields. Flags that parse would
// refuse are left out.
func (g GRE) appendTo(b []byte) []byte {
	be := binary.BigEndian
	g.Flags &^= hasRouting | greVersion
	b = g.appendBase(b)
	if g.HasChecksum {
		b = be.AppendUint16(b, g.Checksum)
		b = be.AppendUint16(b, g.Reserved1)
	}
	if g.HasKey {
		b = be.AppendUint32(b, g.Key)
	}
	if g.HasSeq {
		b = be.AppendUint32(b, g.Seq)
	}
	return b
}
