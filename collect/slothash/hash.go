// Package slothash maps keys to slots of a collector's memory. One hash of the
// key gives the slots of all copies and the checksum: a second hash for each
// would cost as much as the write. The public prototype's hash, CRC-32, is
// available beside Weft's. The structures define the content of slots.
// Origin: docs/papers.md#dta. Layout: docs/collector.md.
package slothash

import (
	"encoding/binary"
	"math/bits"
)

// MaxCopies is the maximum number of copies of a key.
const MaxCopies = 4

// Hash is Weft's hash of a key: 64 bits for its slots and, independent of them,
// 64 for its checksums. (With one word for both, the checksums of two keys that
// share a slot of 2^27 would differ in 37 bits only.) It does not withstand an
// adversary who knows the seed.
type Hash struct{ slots, check uint64 }

// Odd constants with evenly spread bits: the fractions of square roots of
// primes.
const (
	mix0 = 0x6a09e667f3bcc909
	mix1 = 0xbb67ae8584caa73b
	mix2 = 0x3c6ef372fe94f82b
	mix3 = 0xa54ff53a5f1d36f1
	mix4 = 0x510e527fade682d1
	mix5 = 0x9b05688c2b3e6c1f
)

// HashKey hashes a key of any length. Different seeds give independent hashes.
func HashKey(key []byte, seed uint64) Hash {
	if n := len(key); n >= 8 && n <= 16 {
		return HashWords(binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[n-8:]), StartState(n, seed))
	}
	return hashAny(key, seed)
}

// StartState is the initial state of HashWords, the same for all keys of n bytes.
func StartState(n int, seed uint64) uint64 { return seed ^ mix0 ^ uint64(n) }

// HashWords is HashKey for a key of 8 to 16 bytes, given as its first and its
// last 8. It is small enough to be inlined: without a call, and the stores of
// registers around it, twice as many writes to memory are in flight.
//
// After one multiplication keys that differ in few bits have similar slots; a
// second one fixes that. A checksum has its second when it adds a word.
func HashWords(a, b, start uint64) Hash {
	at := fold(a^mix2, b^start)
	at = (at ^ at>>32) * mix3
	return Hash{at ^ at>>29, fold(a^start, b^mix4)}
}

func hashAny(key []byte, seed uint64) Hash {
	h := StartState(len(key), seed)
	for len(key) > 16 {
		h = fold(binary.LittleEndian.Uint64(key)^mix1, binary.LittleEndian.Uint64(key[8:])^h)
		key = key[16:]
	}
	// The last 1 to 16 bytes: two loads that overlap where there are fewer.
	var a, b uint64
	switch m := len(key); {
	case m >= 8:
		a = binary.LittleEndian.Uint64(key)
		b = binary.LittleEndian.Uint64(key[m-8:])
	case m >= 4:
		a = uint64(binary.LittleEndian.Uint32(key))
		b = uint64(binary.LittleEndian.Uint32(key[m-4:]))
	case m > 0:
		a = uint64(key[0])<<16 | uint64(key[m/2])<<8 | uint64(key[m-1])
	}
	return HashWords(a, b, h)
}

// fold multiplies to 128 bits and folds the halves.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// copyFactors distinguish the copies: the high half of the product with each is
// a different slot.
var copyFactors = [MaxCopies]uint64{1, mix4, mix5, mix1}

// Slot returns the slot index of copy n, 0 to MaxCopies-1, for any number of
// slots.
func (h Hash) Slot(n int, slots uint64) uint64 {
	hi, _ := bits.Mul64(h.slots*copyFactors[n&(MaxCopies-1)], slots)
	return hi
}

// slot0 is Slot(0, slots).
func (h Hash) slot0(slots uint64) uint64 {
	hi, _ := bits.Mul64(h.slots, slots)
	return hi
}

// Cell is Slot with copies that never coincide, for counters, which would count
// twice. Cells must be a multiple of MaxCopies.
func (h Hash) Cell(n int, cells uint64) uint64 {
	return h.Slot(n, cells/MaxCopies)*MaxCopies + (h.slots+uint64(n))%MaxCopies
}

// Checksum starts a checksum over the key and its value.
func (h Hash) Checksum() Checksum { return Checksum(h.check) }

// Checksum is a checksum of a key and of words.
type Checksum uint64

// AddWord continues the checksum with a word.
func (s Checksum) AddWord(word uint64) Checksum { return Checksum(fold(uint64(s)^mix0, word^mix3)) }

// AddWordPair continues the checksum with two words, at the cost of one.
func (s Checksum) AddWordPair(a, b uint64) Checksum { return Checksum(fold(uint64(s)^a, b^mix3)) }

// Bits returns the low bits of the checksum that mask selects. It is never 0, so
// that memory that was never written is not valid for any key.
func (s Checksum) Bits(mask uint64) uint64 {
	x := uint64(s^s>>31) & mask
	if x == 0 {
		return 1
	}
	return x
}
