package region

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
)

// The header page. The fixed part, protected by a checksum, never changes once it
// is written; the words after it do.
const (
	HeaderSize = 4096 // bytes in front of the data

	version  = 1
	magicAt  = 0    // 8 bytes
	versAt   = 8    // 32 bits
	sumAt    = 12   // 32 bits: CRC-32C of the rest of the fixed part
	sizeAt   = 16   // 64 bits: bytes of data
	kindAt   = 24   // 16 bytes, padded with zeros
	geomAt   = 40   // 16 bits of length, then JSON
	fixedEnd = 1984 // end of the fixed part

	writesAt = 1984 // Counts.Writes at the last reset
	totalAt  = 1992 // Counts.Total at the last reset
	epochAt  = 2000 // resets so far
	headAt   = 2008 // HeadWord: a word for use by the structure
	cellsAt  = 2048 // Writers cells, a cache line each

	cellSize = 64
	// Writers is the maximum number of writers of a region, each with separate
	// counters.
	Writers = (HeaderSize - cellsAt) / cellSize
)

var (
	magic      = []byte("weftmem\x00")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Header describes the content of a region.
type Header struct {
	Kind     string          // name of the structure
	Geometry json.RawMessage // its configuration
	Size     int64           // bytes of data
}

// check returns an error if h does not fit into the page.
func (h Header) check() error {
	switch {
	case h.Kind == "" || len(h.Kind) > geomAt-kindAt:
		return fmt.Errorf("region: kind %q, want 1 to %d bytes", h.Kind, geomAt-kindAt)
	case len(h.Geometry) > fixedEnd-geomAt-2:
		return fmt.Errorf("region: geometry of %d bytes, want at most %d", len(h.Geometry), fixedEnd-geomAt-2)
	case h.Size <= 0 || h.Size%8 != 0:
		return fmt.Errorf("region: size %d, want a positive multiple of 8", h.Size)
	}
	return nil
}

// encodePage encodes h, which passes check, into a header page of a new region.
func (h Header) encodePage() []byte {
	p := make([]byte, HeaderSize)
	copy(p[magicAt:], magic)
	binary.LittleEndian.PutUint32(p[versAt:], version)
	binary.LittleEndian.PutUint64(p[sizeAt:], uint64(h.Size))
	copy(p[kindAt:geomAt], h.Kind)
	binary.LittleEndian.PutUint16(p[geomAt:], uint16(len(h.Geometry)))
	copy(p[geomAt+2:], h.Geometry)
	binary.LittleEndian.PutUint32(p[sumAt:], crc32.Checksum(p[sizeAt:fixedEnd], castagnoli))
	return p
}

// parseHeader decodes a header page. It keeps no reference to p.
func parseHeader(p []byte) (Header, error) {
	if len(p) < HeaderSize || !bytes.Equal(p[magicAt:versAt], magic) {
		return Header{}, ErrForeign
	}
	if v := binary.LittleEndian.Uint32(p[versAt:]); v != version {
		return Header{}, fmt.Errorf("%w: version %d, want %d", ErrMismatch, v, version)
	}
	if crc32.Checksum(p[sizeAt:fixedEnd], castagnoli) != binary.LittleEndian.Uint32(p[sumAt:]) {
		return Header{}, fmt.Errorf("%w: header", ErrDamaged)
	}
	n := int(binary.LittleEndian.Uint16(p[geomAt:]))
	if n > fixedEnd-geomAt-2 {
		return Header{}, fmt.Errorf("%w: geometry of %d bytes", ErrDamaged, n)
	}
	h := Header{
		Kind:     string(bytes.TrimRight(p[kindAt:geomAt], "\x00")),
		Geometry: bytes.Clone(p[geomAt+2 : geomAt+2+n]),
		Size:     int64(binary.LittleEndian.Uint64(p[sizeAt:])),
	}
	if err := h.check(); err != nil {
		return Header{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return h, nil
}

// checkSame returns an error when a region with header h is opened as want.
func (h Header) checkSame(want Header) error {
	if h.Kind != want.Kind {
		return fmt.Errorf("%w: it holds %s, want %s", ErrMismatch, h.Kind, want.Kind)
	}
	if h.Size != want.Size || !bytes.Equal(h.Geometry, want.Geometry) {
		return fmt.Errorf("%w: it holds %d bytes of %s %s, want %d bytes of %s",
			ErrMismatch, h.Size, h.Kind, h.Geometry, want.Size, want.Geometry)
	}
	return nil
}
