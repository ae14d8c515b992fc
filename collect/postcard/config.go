// Package postcard is Postcarding: it stores the values that the hops of a path
// reported, all hops of a key in one chunk of memory, N times. A hop's word is
// its value's code XORed with a checksum of key and hop, so a chunk is valid for
// its key only if every word decodes. The translator gathers the postcards of a
// path; a Scheme gives it the bytes and the chunks.
// Origin: docs/papers.md#dta. Layout: docs/collector.md#postcarding.
package postcard

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/weft-telemetry/weft/collect/slothash"
)

// Errors of Write, HashKey, AppendChunk and Read.
var (
	ErrKeyLen = slothash.ErrKeyLen
	ErrHops   = errors.New("postcard: more hops than a chunk has")
	ErrCopies = errors.New("postcard: copies are not 1 to 4")
)

// Layout is the content of chunks and the mapping of keys to them.
type Layout string

// The layouts.
const (
	// Sealed is the paper's chunk with a checksum over all of it at its end. A
	// chunk that is torn between two writes of one key is never valid, and
	// the set of values is not needed.
	Sealed Layout = "sealed"
	// Plain is the paper's chunk.
	Plain Layout = "plain"
	// Prototype is the public prototype's, byte for byte: 5 hops, values XORed
	// with a CRC-32 of the key with a different polynomial for each hop, one
	// copy, no code for a hop that did not report.
	Prototype Layout = "prototype"
)

// Blank marks a hop that did not report. It is not a valid value.
const Blank = math.MaxUint32

// Kind names the structure in a region's header.
const Kind = "postcarding"

const (
	// MaxHops is the maximum number of hops in a chunk.
	MaxHops   = 15
	protoHops = 5
	maxChunks = 1 << 40
)

// Config is the geometry of a table.
type Config struct {
	Layout Layout `json:"layout"`
	Chunks uint64 `json:"chunks"` // prototype: a power of two, at most 2^31
	Hops   int    `json:"hops"`   // B, the longest path; prototype: 5
	Bits   int    `json:"bits"`   // b, of a hop's word; prototype: 32
	Seed   uint64 `json:"seed"`   // of the hash; prototype: 0
}

// DefaultConfig is a table for the 5 hops of a fat-tree in a memory of about
// size bytes.
func DefaultConfig(size int64) Config {
	c := Config{Layout: Sealed, Hops: 5, Bits: 32}
	c.Chunks = uint64(size) / uint64(c.chunk())
	return c
}

// Validate returns the first error of the configuration.
func (c Config) Validate() error {
	switch {
	case c.Layout != Sealed && c.Layout != Plain && c.Layout != Prototype:
		return fmt.Errorf("postcard: layout %q, want %s, %s or %s", c.Layout, Sealed, Plain, Prototype)
	case c.Chunks < 1 || c.Chunks > maxChunks:
		return fmt.Errorf("postcard: %d chunks, want 1 to 2^40", c.Chunks)
	case c.Hops < 1 || c.Hops > MaxHops:
		return fmt.Errorf("postcard: %d hops, want 1 to %d", c.Hops, MaxHops)
	case c.Bits < 1 || c.Bits > 32:
		return fmt.Errorf("postcard: %d bits, want 1 to 32", c.Bits)
	case c.Layout != Prototype:
		return nil
	case !slothash.IsPrototypeSlots(c.Chunks):
		return fmt.Errorf("postcard: %d chunks, want a power of two up to 2^31 with the prototype's layout", c.Chunks)
	case c.Hops != protoHops || c.Bits != 32 || c.Seed != 0:
		return fmt.Errorf("postcard: %d hops of %d bits with seed %d, want 5 of 32 and 0 with the prototype's layout",
			c.Hops, c.Bits, c.Seed)
	}
	return nil
}

// chunk is the length of a chunk in bytes: a power of two, so that none crosses
// cache lines without need.
func (c Config) chunk() int {
	halves := c.Hops
	if c.Layout == Sealed {
		halves++
	}
	return max(8, 4<<bits.Len(uint(halves-1)))
}

// Size is the memory size of a table in bytes.
func (c Config) Size() int64 { return int64(c.Chunks) * int64(c.chunk()) }
