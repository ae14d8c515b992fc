package fieldcodec

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Length codes the length of a list whose columns follow, and returns it. Each element takes
// a byte of each column at least, so that a length that is not true fails before it costs
// memory.
func (c *Coder) Length(n, columns int) int {
	u := uint64(n)
	if !c.reading {
		c.Uint64(&u)
		return n
	}
	if u = c.read(math.MaxUint64); u > uint64(len(c.b)/columns) {
		c.err = ErrShort
		return 0
	}
	return int(u)
}

// Column codes one number of each element of a list, which is at most limit, all with as
// many bytes as the largest needs. That is much faster than one by one, and of small
// numbers as short.
func Column[T any](c *Coder, list []T, limit uint64, get func(*T) uint64, set func(*T, uint64)) {
	if c.err != nil || len(list) == 0 {
		return
	}
	c.column = slices.Grow(c.column[:0], len(list))[:len(list)]
	if !c.reading {
		for i := range list {
			c.column[i] = get(&list[i])
		}
		c.writeColumn()
		return
	}
	if c.readColumn(limit); c.err != nil {
		return
	}
	for i, n := range c.column {
		set(&list[i], n)
	}
}

// Field is Column of a field of the elements.
func Field[T any, N ~uint8 | ~uint16 | ~uint32 | ~uint64](c *Coder, list []T, at func(*T) *N) {
	get := func(e *T) uint64 { return uint64(*at(e)) }
	Column(c, list, uint64(^N(0)), get, func(e *T, v uint64) { *at(e) = N(v) })
}

func (c *Coder) writeColumn() {
	all := uint64(1)
	for _, n := range c.column {
		all |= n
	}
	width := (bits.Len64(all) + 7) / 8
	c.b = append(c.b, byte(width))
	at, size := len(c.b), len(c.column)*width
	c.b = slices.Grow(c.b, size+8)[:at+size+8]
	// Each word reaches beyond its number, where the next one is written.
	for i, n := range c.column {
		binary.LittleEndian.PutUint64(c.b[at+i*width:], n)
	}
	c.b = c.b[:at+size]
}

func (c *Coder) readColumn(limit uint64) {
	if len(c.b) == 0 {
		c.err = ErrShort
		return
	}
	width := int(c.b[0])
	if width < 1 || width > 8 {
		c.Fail("numbers of %d bytes, want 1 to 8", width)
		return
	}
	b := c.b[1:]
	if len(c.column) > len(b)/width {
		c.err = ErrShort
		return
	}
	c.b = b[len(c.column)*width:]
	mask, largest := ^uint64(0)>>(64-8*width), uint64(0)
	for i := range c.column {
		var n uint64
		if at := i * width; at+8 <= len(b) {
			n = binary.LittleEndian.Uint64(b[at:]) & mask
		} else { // at the end of the input
			var word [8]byte
			copy(word[:], b[at:at+width])
			n = binary.LittleEndian.Uint64(word[:])
		}
		c.column[i], largest = n, max(largest, n)
	}
	if largest > limit {
		c.Fail("number %d, want at most %d", largest, limit)
	}
}
