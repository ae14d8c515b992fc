//go:build !purego && !race

package region

// What Go has no words for, in assembly: to ask for a cache line that will be
// written, without waiting for it. noasm.go does the same in Go, for other
// processors, the race detector and builds with the tag purego.

// Prefetch asks for the cache lines of words that will soon be written. A run
// of reports asks for all its places before it writes the first: so many misses
// are under way as the processor can have, which a loop that hashes and encodes
// in between has room for only a few of.
//
// Loads do nearly the same, but hold their places in the processor's queues
// until the line is there: Postcarding then has 0.51 of the memory's rate and
// not 0.56, Key-Increment 0.76 and not 0.83 (weft bench dta, on a busy machine).
//
//go:noescape
func Prefetch(words []uint64, at []uint64)

// StoreLine stores the bytes of eight words, none of them in parts, and asks
// for the line of a word that will be written later; to itself if there is
// none. Append reaches 0.66 of the rate of a copy with it, and 0.46 with eight
// stores (weft bench dta, on a busy machine).
//
//go:noescape
func StoreLine(to *[8]uint64, b *[64]byte, next *uint64)
