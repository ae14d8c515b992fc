// Package fieldcodec encodes and decodes structs field by field with one function for
// both directions: what is written is what is read, in the same order. Numbers are
// varints. Input is never trusted: no length makes more memory than the bytes behind it.
package fieldcodec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrShort is returned when the input ends inside a field.
var ErrShort = errors.New("short input")

// Coder writes fields to a buffer, or reads them from one. After an error it does nothing.
type Coder struct {
	b       []byte
	reading bool
	err     error
	column  []uint64 // memory of Column
}

// NewWriter returns a Coder that appends to b.
func NewWriter(b []byte) *Coder { return &Coder{b: b} }

// NewReader returns a Coder that reads b. What it reads keeps no reference to b, except
// for Bytes.
func NewReader(b []byte) *Coder { return &Coder{b: b, reading: true} }

// Reading reports whether fields are read.
func (c *Coder) Reading() bool { return c.reading }

// Err returns the first error.
func (c *Coder) Err() error { return c.err }

// Fail makes the coder fail, for a value that cannot be.
func (c *Coder) Fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// Written returns the buffer with all that was appended.
func (c *Coder) Written() []byte { return c.b }

// Rest returns the input that was not read.
func (c *Coder) Rest() []byte { return c.b }

// End fails if input is left.
func (c *Coder) End() error {
	if c.err == nil && c.reading && len(c.b) > 0 {
		c.Fail("%d bytes after the end", len(c.b))
	}
	return c.err
}

// Uint64 codes a number.
func (c *Coder) Uint64(v *uint64) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	*v = c.read(math.MaxUint64)
}

// read reads a number that is at most limit.
func (c *Coder) read(limit uint64) uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.b)
	switch {
	case n <= 0:
		c.err = ErrShort
		return 0
	case v > limit:
		c.Fail("number %d, want at most %d", v, limit)
		return 0
	}
	c.b = c.b[n:]
	return v
}

// Int64 codes a signed number.
func (c *Coder) Int64(v *int64) {
	u := uint64(*v)<<1 ^ uint64(*v>>63)
	c.Uint64(&u)
	if c.reading {
		*v = int64(u>>1) ^ -int64(u&1)
	}
}

// Float64 codes a number as its bits.
func (c *Coder) Float64(v *float64) {
	u := math.Float64bits(*v)
	c.Uint64(&u)
	if c.reading {
		*v = math.Float64frombits(u)
	}
}

// Bool codes a truth value.
func (c *Coder) Bool(v *bool) {
	if !c.reading {
		var u uint64
		if *v {
			u = 1
		}
		c.Uint64(&u)
		return
	}
	*v = c.read(1) == 1
}

// Unsigned codes a number of a narrower type.
func Unsigned[T ~uint8 | ~uint16 | ~uint32](c *Coder, v *T) {
	if !c.reading {
		u := uint64(*v)
		c.Uint64(&u)
		return
	}
	*v = T(c.read(uint64(^T(0))))
}

// Signed codes a signed number of another type.
func Signed[T ~int | ~int32 | ~int64](c *Coder, v *T) {
	i := int64(*v)
	c.Int64(&i)
	if c.reading {
		if *v = T(i); int64(*v) != i {
			c.Fail("number %d, want one of %T", i, *v)
		}
	}
}

// Bytes codes bytes. Those that are read are a part of the input.
func (c *Coder) Bytes(v *[]byte) {
	if !c.reading {
		c.b = append(binary.AppendUvarint(c.b, uint64(len(*v))), *v...)
		return
	}
	*v = nil
	n := c.read(uint64(len(c.b)))
	if c.err != nil {
		return
	}
	if n > uint64(len(c.b)) {
		c.err = ErrShort
		return
	}
	*v, c.b = c.b[:n:n], c.b[n:]
}

// String codes a text.
func (c *Coder) String(v *string) {
	b := []byte(*v)
	c.Bytes(&b)
	if c.reading {
		*v = string(b)
	}
}

// Words codes words of 8 bytes each, as they are.
func (c *Coder) Words(v *[]uint64) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, uint64(len(*v)))
		for _, w := range *v {
			c.b = binary.LittleEndian.AppendUint64(c.b, w)
		}
		return
	}
	*v = nil
	n := c.read(uint64(len(c.b) / 8))
	if c.err != nil {
		return
	}
	if n*8 > uint64(len(c.b)) {
		c.err = ErrShort
		return
	}
	*v = make([]uint64, n)
	for i := range *v {
		(*v)[i] = binary.LittleEndian.Uint64(c.b[8*i:])
	}
	c.b = c.b[8*n:]
}

// Slice codes the elements of a slice. Each takes a byte at least, so that a length that is
// not true fails before it costs memory.
func Slice[T any](c *Coder, s *[]T, each func(*T)) {
	n := uint64(len(*s))
	if !c.reading {
		c.Uint64(&n)
		for i := range *s {
			each(&(*s)[i])
		}
		return
	}
	*s = nil
	n = c.read(uint64(len(c.b)))
	for range n {
		if len(c.b) == 0 {
			c.err = errors.Join(c.err, ErrShort)
		}
		if c.err != nil {
			*s = nil
			return
		}
		// In place: a variable here would be on the heap, for every element.
		var none T
		*s = append(*s, none)
		each(&(*s)[len(*s)-1])
	}
	if c.err != nil {
		*s = nil
	}
}
