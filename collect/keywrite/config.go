// Package keywrite is Key-Write: it stores the newest value of a key in N slots
// of a large table, without reading it. Later keys overwrite earlier ones, and a
// checksum in each slot lets a reader verify that the copy is still its key's.
// Translating and transporting reports is left to others; a Scheme gives them the
// bytes and the slots.
// Origin: docs/papers.md#dta. Layout: docs/collector.md#key-write.
package keywrite

import (
	"errors"
	"fmt"
	"math"

	"github.com/weft-telemetry/weft/collect/slothash"
)

// Errors of Write, HashKey and Read.
var (
	ErrKeyLen   = slothash.ErrKeyLen
	ErrValueLen = errors.New("keywrite: value length")
	ErrCopies   = errors.New("keywrite: copies are not 1 to 4")
)

// Layout is the content of slots and the mapping of keys to them.
type Layout string

// The layouts.
const (
	// Weft: a checksum over key and value, then the value. A value that is torn
	// between two writes is never valid.
	Weft Layout = "weft"
	// Prototype: the CRC-32 of a 4-byte key, then the value, byte for byte as in
	// the public prototype. Only its slots of 8 bytes are written atomically; in
	// wider ones a torn value looks valid. Its copies are not independent
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

// Validate returns the first error of the configuration.
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
		return fmt.Errorf("keywrite: %d slots of %d bytes exceed the address space", c.Slots, c.stride())
	}
	if c.Layout == Weft {
		return nil
	}
	switch {
	case !slothash.IsPrototypeSlots(c.Slots):
		return fmt.Errorf("keywrite: %d slots, want a power of two up to 2^31 with the prototype's layout", c.Slots)
	case c.Value != 4 && c.Value != 12 && c.Value != 28:
		return fmt.Errorf("keywrite: value of %d bytes, want 4, 12 or 28 with the prototype's layout", c.Value)
	case c.Check != 32 || c.Seed != 0:
		return fmt.Errorf("keywrite: checksum of %d bits with seed %d, want 32 and 0 with the prototype's layout",
			c.Check, c.Seed)
	}
	return nil
}

// sumBytes is the length of the checksum in a slot, in bytes.
func (c Config) sumBytes() int {
	if c.Check <= 32 {
		return 4
	}
	return 8
}

// stride is the length of a slot in bytes: whole words.
func (c Config) stride() int { return (c.sumBytes() + c.Value + 7) &^ 7 }

// Size is the memory size of a table in bytes.
func (c Config) Size() int64 { return int64(c.Slots) * int64(c.stride()) }
