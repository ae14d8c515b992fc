// Package list is Append: it keeps the newest entries of many lists, each a ring
// buffer in one memory. Writers add at the head, readers follow with cursors and
// detect entries that were overwritten before they read them. The translator
// gathers reports into batches; a Scheme gives it the offsets.
// Origin: docs/papers.md#dta. Layout: docs/collector.md#append.
package list

import (
	"errors"
	"fmt"
	"math"
)

// Errors of Append, AppendEntry and BatchParts.
var (
	ErrList    = errors.New("list: no such list")
	ErrDataLen = errors.New("list: data does not fit the list's entries")
	ErrBatch   = errors.New("list: not a whole number of entries")
)

// Layout is the layout of heads and rings.
type Layout string

// The layouts.
const (
	// Weft: a word for each list that counts its entries, then the rings.
	Weft Layout = "weft"
	// Prototype: the ring of a single list of 4-byte entries, byte for byte as in
	// the public prototype; an entry of zero was never written. The number of
	// entries is in the region's header, which RDMA does not reach.
	Prototype Layout = "prototype"
)

// Kind names the structure in a region's header.
const Kind = "append"

// MaxLists is the maximum number of lists of one memory.
const MaxLists = 1 << 20

// Class is a group of lists with the same parameters. Lists are numbered through
// all classes, from 0.
type Class struct {
	Lists    int  `json:"lists"`
	Entry    int  `json:"entry"`    // bytes of data in an entry
	Capacity int  `json:"capacity"` // entries of each ring; the newest Capacity-Batch can be read
	Sized    bool `json:"sized"`    // entries may be shorter, with a length field each; else they are padded with zeros
}

const (
	sizeLen  = 2 // the length in front of a sized entry
	align    = 64
	maxEntry = math.MaxUint16
	// maxClasses keeps the geometry within a region's header.
	maxClasses = 16
)

// stride is the distance of two entries in bytes.
func (c Class) stride() int {
	if c.Sized {
		return sizeLen + c.Entry
	}
	return c.Entry
}

// ring is the length of a list's ring: whole cache lines, so that no word
// belongs to two lists and thus to two writers.
func (c Class) ring() int64 { return (int64(c.stride())*int64(c.Capacity) + align - 1) &^ (align - 1) }

// Config is the geometry of the lists.
type Config struct {
	Layout  Layout  `json:"layout"`
	Batch   int     `json:"batch"` // maximum number of entries that become readable at once
	Classes []Class `json:"classes"`
}

// DefaultConfig is lists of 4-byte entries, in batches of 16 as in the paper's
// evaluation.
func DefaultConfig(lists, capacity int) Config {
	return Config{Layout: Weft, Batch: 16, Classes: []Class{{Lists: lists, Entry: 4, Capacity: capacity}}}
}

// Validate returns the first error of the configuration.
func (c Config) Validate() error {
	if c.Layout != Weft && c.Layout != Prototype {
		return fmt.Errorf("list: layout %q, want %s or %s", c.Layout, Weft, Prototype)
	}
	if c.Batch < 1 {
		return fmt.Errorf("list: batch of %d entries, want at least 1", c.Batch)
	}
	if len(c.Classes) < 1 || len(c.Classes) > maxClasses {
		return fmt.Errorf("list: %d classes, want 1 to %d", len(c.Classes), maxClasses)
	}
	lists, size := 0, int64(0)
	for i, k := range c.Classes {
		switch {
		case k.Lists < 1 || k.Lists > MaxLists-lists:
			return fmt.Errorf("list: class %d has %d lists, want at least 1 and at most %d in all", i, k.Lists, MaxLists)
		case k.Entry < 1 || k.Entry > maxEntry:
			return fmt.Errorf("list: class %d has entries of %d bytes, want 1 to %d", i, k.Entry, maxEntry)
		case k.Capacity <= c.Batch || k.Capacity > math.MaxInt32:
			return fmt.Errorf("list: class %d has a capacity of %d entries, want more than a batch of %d and at most %d",
				i, k.Capacity, c.Batch, math.MaxInt32)
		case int64(k.Lists) > (math.MaxInt64/2-size)/k.ring():
			return fmt.Errorf("list: class %d exceeds the address space", i)
		}
		lists += k.Lists
		size += int64(k.Lists) * k.ring()
	}
	if c.Layout == Prototype && (lists != 1 || c.Classes[0].Entry != 4 || c.Classes[0].Sized) {
		return fmt.Errorf("list: the prototype's layout has one list of 4-byte entries per memory")
	}
	return nil
}

// Lists is the number of lists of all classes.
func (c Config) Lists() int {
	n := 0
	for _, k := range c.Classes {
		n += k.Lists
	}
	return n
}

// heads is the length of the heads in front of the rings, in bytes.
func (c Config) heads() int64 {
	if c.Layout == Prototype {
		return 0
	}
	return (int64(c.Lists())*8 + align - 1) &^ (align - 1)
}

// Size is the memory size of the lists in bytes.
func (c Config) Size() int64 {
	size := c.heads()
	for _, k := range c.Classes {
		size += int64(k.Lists) * k.ring()
	}
	return size
}
