package engine

import (
	"math"
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Time is an instant of a run, or a span, in picoseconds: at 400 Gb/s a byte
// takes 20 of them. It lasts for 106 days.
type Time int64

// Spans of Time.
const (
	Nanosecond  Time = 1000
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond

	// Forever is later than everything.
	Forever Time = math.MaxInt64
)

// Of converts a span. What does not fit is Forever.
func Of(d time.Duration) Time {
	if d > time.Duration(Forever/Nanosecond) {
		return Forever
	}
	return Time(d) * Nanosecond
}

// Model returns the time in nanoseconds, rounded down.
func (t Time) Model() model.Time { return model.Time(t / Nanosecond) }

// Duration returns the span in nanoseconds, rounded down.
func (t Time) Duration() time.Duration { return time.Duration(t / Nanosecond) }

// String prints the span since the start of the run.
func (t Time) String() string {
	if t == Forever {
		return "forever"
	}
	return t.Model().String()
}

// Transmit is how long bytes take at a rate, rounded up to a picosecond: a
// wire is never faster than it is.
func Transmit(bytes int64, rate model.Rate) Time {
	hi, lo := bits.Mul64(uint64(bytes), 8*uint64(Second))
	if hi >= uint64(rate) {
		return Forever
	}
	q, rest := bits.Div64(hi, lo, uint64(rate))
	if rest != 0 {
		q++
	}
	return Time(min(q, math.MaxInt64))
}
