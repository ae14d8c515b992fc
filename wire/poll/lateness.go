package poll

import (
	"math/bits"
	"time"
)

// Lateness is a time in seven bits: 0 to 7.5 s, rounded down by less than a fifth.
// Values below 4 are nanoseconds; others are a power of two, of which n/4 is one more
// than the exponent, times 4 to 7.
type Lateness uint8

// MaxLateness is the longest.
const MaxLateness Lateness = 127

// LatenessOf returns a time rounded down, and 0 if it is negative.
func LatenessOf(d time.Duration) Lateness {
	if d < 4 {
		return Lateness(max(d, 0))
	}
	exponent := bits.Len64(uint64(d)) - 3
	return Lateness(min(uint64(exponent)<<2+uint64(d)>>exponent, uint64(MaxLateness)))
}

// Duration returns the time.
func (l Lateness) Duration() time.Duration {
	if l < 4 {
		return time.Duration(l)
	}
	return time.Duration(4+l&3) << (l>>2 - 1)
}
