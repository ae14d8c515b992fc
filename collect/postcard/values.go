package postcard

import (
	"fmt"
	"math/bits"
)

// Values is the set V of values that hops can report, such as all switch ids,
// with the code of each: the paper's lookup table. For a reader that has it, a
// chunk with any other value is invalid.
type Values struct {
	bits  int
	mask  uint32 // of the table's length
	table []uint64
	n     int
}

// NewValues makes the table for codes of codeBits bits. Two values with the same
// code are an error; use more bits then. 32 bits are always enough.
func NewValues(codeBits int, values ...uint32) (*Values, error) {
	if codeBits < 1 || codeBits > 32 {
		return nil, fmt.Errorf("postcard: codes of %d bits, want 1 to 32", codeBits)
	}
	v := &Values{bits: codeBits, table: make([]uint64, 2<<bits.Len(uint(len(values)+1)))}
	v.mask = uint32(len(v.table) - 1)
	for _, x := range append([]uint32{Blank}, values...) {
		if err := v.addValue(x); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// An entry holds its value in the upper bits and a bit that marks it as used; its
// index is its code, or the next free one.
const used = 1

func (v *Values) addValue(x uint32) error {
	c := v.trim(encodeValue(x))
	for i := c; ; i++ {
		e := &v.table[i&v.mask]
		if *e == 0 {
			*e = uint64(x)<<32 | used
			v.n++
			return nil
		}
		old := uint32(*e >> 32)
		if old == x {
			return nil
		}
		if v.trim(encodeValue(old)) == c {
			return fmt.Errorf("postcard: values %d and %d have the same code of %d bits, want more bits", old, x, v.bits)
		}
	}
}

func (v *Values) trim(c uint32) uint32 { return c & uint32(1<<uint(v.bits)-1) }

// valueOf returns the value of a code.
func (v *Values) valueOf(c uint32) (uint32, bool) {
	for i := c; ; i++ {
		e := v.table[i&v.mask]
		if e == 0 {
			return 0, false
		}
		if x := uint32(e >> 32); v.trim(encodeValue(x)) == c {
			return x, true
		}
	}
}

// contains reports whether x is one of the values.
func (v *Values) contains(x uint32) bool {
	got, ok := v.valueOf(v.trim(encodeValue(x)))
	return ok && got == x
}

// Len returns the number of values, without Blank.
func (v *Values) Len() int { return v.n - 1 }
