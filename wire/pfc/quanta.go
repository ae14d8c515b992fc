package pfc

import (
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Quanta is a pause time in units of 512 bit times: how long it lasts depends
// on the speed of the link.
type Quanta uint16

// MaxQuanta is the longest pause one frame can request: 335 µs at 100 Gb/s.
const MaxQuanta Quanta = 0xffff

// quantumBits is the length of one quantum in bits.
const quantumBits = 512

// Duration returns how long a pause of q lasts on a link of rate r, rounded
// down to a nanosecond. r must be positive.
func (q Quanta) Duration(r model.Rate) time.Duration {
	// At most 65535 × 512 × 10⁹: far below 2⁶³.
	return time.Duration(int64(q) * quantumBits * int64(time.Second) / int64(r))
}

// QuantaOf returns the shortest pause that lasts at least d on a link of rate
// r, or MaxQuanta where none is long enough. r must be positive; a negative d
// counts as zero.
//
// Rounding up here and down in Duration makes the two inverse on links up to
// 512 Gb/s, where a quantum is at least a nanosecond.
func QuantaOf(d time.Duration, r model.Rate) Quanta {
	if d <= 0 {
		return 0
	}
	const unit = quantumBits * uint64(time.Second)
	hi, lo := bits.Mul64(uint64(d), uint64(r))
	if hi >= unit {
		return MaxQuanta // the quotient would not fit a word
	}
	q, rest := bits.Div64(hi, lo, unit)
	if rest > 0 {
		q++
	}
	return Quanta(min(q, uint64(MaxQuanta)))
}
