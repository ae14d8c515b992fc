//go:build !purego

package region

// Prefetch asks for the cache lines of words that will soon be written, and
// waits for none. A run of reports asks for all its places before it writes the
// first: so many misses are under way as the processor can have, which a loop
// that hashes and encodes in between has room for only a few of.
//
// Loads do the same, as they do where this is not built, but hold their places
// in the processor's queues until the line is there: Postcarding then has 0.51
// of the memory's rate and not 0.56, Key-Increment 0.76 and not 0.83 (weft bench
// dta, on a busy machine). Go has no word for it, hence the assembly.
//
//go:noescape
func Prefetch(words []uint64, at []uint64)
