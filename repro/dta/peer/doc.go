// Package peer holds what the paper on Direct Telemetry Access compares with:
// collectors whose CPU finds a slot for every report. A hash table, a
// cuckoo table, and a log with indexes by flow and by each field of its key, in
// the style of Confluo's Atomic MultiLog. They are for one goroutine, without the
// atomic operations of the originals, which only makes them faster; none is
// part of Weft's collector. Origin: docs/papers.md#dta.
package peer

import (
	"encoding/binary"

	"github.com/weft-telemetry/weft/collect/slothash"
)

// KeySize is the length of a flow's key: source and destination address, their
// ports, the protocol.
const KeySize = 13

// Key is a flow's key.
type Key [KeySize]byte

// entry is a slot of a table.
type entry struct {
	value uint32
	used  bool
	key   Key
}

// hash returns two independent slots among a power of two.
func (k *Key) hash(mask uint64) (uint64, uint64) {
	h := slothash.HashWords(binary.LittleEndian.Uint64(k[:]), binary.LittleEndian.Uint64(k[KeySize-8:]),
		slothash.StartState(KeySize, 0))
	return h.Slot(0, mask+1), h.Slot(1, mask+1)
}
