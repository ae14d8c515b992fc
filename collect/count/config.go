// Package count is Key-Increment: sums by key in a count-min sketch whose cells
// are words of a large memory. Adding to a key adds to N cells, shared with other
// keys; their minimum is never below the key's sum and seldom far above it.
// Translating and transporting reports is left to others; a Scheme gives them the
// cells.
// Origin: docs/papers.md#dta. Layout: docs/collector.md#key-increment.
package count

import (
	"errors"
	"fmt"

	"github.com/weft-telemetry/weft/collect/slothash"
)

// Errors of Add, HashKey and Read.
var (
	ErrKeyLen = slothash.ErrKeyLen
	ErrCopies = errors.New("count: copies are not 1 to 4")
)

// Layout is the mapping of keys to cells.
type Layout string

// The layouts. A cell is a 64-bit word, little-endian, in both.
const (
	Weft      Layout = "weft"      // the cells of a key are distinct
	Prototype Layout = "prototype" // 4-byte keys, slots by CRC-32, as the public prototype
)

// Kind names the structure in a region's header.
const Kind = "key-increment"

// Config is the geometry of a table.
type Config struct {
	Layout Layout `json:"layout"`
	Cells  uint64 `json:"cells"` // a multiple of 4; prototype: a power of two, at most 2^31
	Seed   uint64 `json:"seed"`  // of the hash; prototype: 0
}

// DefaultConfig is a table in a memory of about size bytes.
func DefaultConfig(size int64) Config { return Config{Layout: Weft, Cells: uint64(size) / 32 * 4} }

const maxCells = 1 << 40

// Validate returns the first error of the configuration.
func (c Config) Validate() error {
	switch {
	case c.Layout != Weft && c.Layout != Prototype:
		return fmt.Errorf("count: layout %q, want %s or %s", c.Layout, Weft, Prototype)
	case c.Cells < 1 || c.Cells > maxCells:
		return fmt.Errorf("count: %d cells, want 1 to 2^40", c.Cells)
	case c.Layout == Weft && c.Cells%slothash.MaxCopies != 0:
		return fmt.Errorf("count: %d cells, want a multiple of %d", c.Cells, slothash.MaxCopies)
	case c.Layout == Prototype && !slothash.IsPrototypeSlots(c.Cells):
		return fmt.Errorf("count: %d cells, want a power of two up to 2^31 with the prototype's layout", c.Cells)
	case c.Layout == Prototype && c.Seed != 0:
		return fmt.Errorf("count: seed %d, want 0 with the prototype's layout", c.Seed)
	}
	return nil
}

// Size is the memory size of a table in bytes.
func (c Config) Size() int64 { return int64(c.Cells) * 8 }
