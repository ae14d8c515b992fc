// Package keywrite stores the newest value of a key in N places of a large
// table, without reading it: later keys overwrite earlier ones, and a checksum
// in each slot tells a reader whether the copy is still its key's. Translating
// reports and carrying them is left to others; a Scheme gives them the bytes
// and the places.
// Origin: docs/papers.md#dta. Layout: docs/collector.md#key-write.
package keywrite

import (
	"errors"
	"fmt"
	"math"

	"github.com/weft-telemetry/weft/collect/slothash"
)

// What Write, Place and Read return.
var (
	ErrKeyLen   = slothash.ErrKeyLen
	ErrValueLen = errors.New("keywrite: value length")
	ErrCopies   = errors.New("keywrite: copies are not 1 to 4")
)

// Layout is what lies in a slot, and where.
type Layout string

// The layouts.
const (
	// Weft: a checksum over key and value, then the value. No value that is
	// torn between two writes is taken for whole.
	Weft Layout = "weft"
	// Prototype: the CRC-32 of a 4-byte key, then the value, byte for byte as
	// the public prototype has it. Only its slots of 8 bytes are written whole;
	// in wider ones a torn value looks valid. Its copies are not independent
	// (docs/collector.md#the-prototypes-layouts).
	Prototype Layout = "prototype"
)

// Kind names the structure in a region's header.
const Kind = "key-write"

// Config is the geometry of a table.
type Config struct {
	Layout Layout `json:"layout"`
	Slots  uint64 `json:"slots"` // prototype: a power of two, at most 2^31
	Value  int    `json:"value"` // bytes of every value; prototype: 4, 12 or 28
	Check  int    `json:"check"` // bits of checksum, 1 to 64; prototype: 32
	Seed   uint64 `json:"seed"`  // of the hash; prototype: 0
}

// DefaultConfig is a table of 4-byte values, with the 32 bits of checksum that
// the paper suggests, in a memory of about size bytes.
func DefaultConfig(size int64) Config {
	return Config{Layout: Weft, Slots: uint64(size) / 8, Value: 4, Check: 32}
}

const (
	maxValue = 4096
	maxSlots = 1 << 40
)

// Validate complains about the first thing that is wrong.
func (c Config) Validate() error {
	if c.Layout != Weft && c.Layout != Prototype {
		return fmt.Errorf("keywrite: layout %q, want %s or %s", c.Layout, Weft, Prototype)
	}
	if c.Slots < 1 || c.Slots > maxSlots {
		return fmt.Errorf("keywrite: %d slots, want 1 to 2^40", c.Slots)
	}
	if c.Value < 1 || c.Value > maxValue {
		return fmt.Errorf("keywrite: value of %d bytes, want 1 to %d", c.Value, maxValue)
	}
	if c.Check < 1 || c.Check > 64 {
		return fmt.Errorf("keywrite: checksum of %d bits, want 1 to 64", c.Check)
	}
	if c.Slots > math.MaxInt64/uint64(c.stride()) {
		return fmt.Errorf("keywrite: %d slots of %d bytes are more than a machine can have", c.Slots, c.stride())
	}
	if c.Layout == Weft {
		return nil
	}
	switch {
	case !slothash.IsPrototypeSlots(c.Slots):
		return fmt.Errorf("keywrite: %d slots, the prototype has a power of two up to 2^31", c.Slots)
	case c.Value != 4 && c.Value != 12 && c.Value != 28:
		return fmt.Errorf("keywrite: value of %d bytes, the prototype has 4, 12 or 28", c.Value)
	case c.Check != 32 || c.Seed != 0:
		return fmt.Errorf("keywrite: checksum of %d bits with seed %d, the prototype has 32 and 0", c.Check, c.Seed)
	}
	return nil
}

// sumBytes is how much of a slot the checksum takes.
func (c Config) sumBytes() int {
	if c.Check <= 32 {
		return 4
	}
	return 8
}

// stride is the length of a slot: whole words.
func (c Config) stride() int { return (c.sumBytes() + c.Value + 7) &^ 7 }

// Size is the length of the memory of a table.
func (c Config) Size() int64 { return int64(c.Slots) * int64(c.stride()) }
