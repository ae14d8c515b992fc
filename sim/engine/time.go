package engine

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Time is an instant in picoseconds since the start of a run, or a duration. At
// 400 Gb/s a byte takes 20 ps, so the times of usual links and frames are whole
// numbers. The range is 106 days.
type Time int64

// Durations.
const (
	Nanosecond  Time = 1000
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond

	// Forever is later than every event of a run.
	Forever Time = math.MaxInt64
)

// longest is 26 days: no run is longer, and a sum of three is before Forever.
const longest = Forever / 4 / Nanosecond * Nanosecond

// Of converts a duration. More than 26 days become 26 days, so that the current
// time and a few durations can be added without overflow.
func Of(d time.Duration) Time {
	const most = time.Duration(longest / Nanosecond)
	return Time(min(max(d, -most), most)) * Nanosecond
}

// Model returns t in nanoseconds, rounded down: the reading of a clock that
// starts with the run and never drifts.
func (t Time) Model() model.Time { return model.Time(t.Duration()) }

// Duration returns t in nanoseconds, rounded down.
func (t Time) Duration() time.Duration {
	if t >= 0 {
		return time.Duration(uint64(t) / uint64(Nanosecond)) // half the instructions
	}
	return time.Duration((t+1)/Nanosecond - 1)
}

// String prints t exactly: "80ns", "1.00032µs", "forever".
func (t Time) String() string {
	abs, sign := uint64(t), ""
	if t < 0 {
		abs, sign = -abs, "-"
	}
	if abs == uint64(Forever) {
		return sign + "forever"
	}
	unit, name := Time(1), "ps"
	switch {
	case abs >= uint64(Second):
		unit, name = Second, "s"
	case abs >= uint64(Millisecond):
		unit, name = Millisecond, "ms"
	case abs >= uint64(Microsecond):
		unit, name = Microsecond, "µs"
	case abs >= uint64(Nanosecond):
		unit, name = Nanosecond, "ns"
	}
	s := sign + strconv.FormatUint(abs/uint64(unit), 10)
	if rest := abs % uint64(unit); rest != 0 {
		// unit+rest prints the rest after a 1, with its leading zeros.
		digits := strconv.FormatUint(uint64(unit)+rest, 10)[1:]
		s += "." + strings.TrimRight(digits, "0")
	}
	return s + name
}

// Transmit returns how long bytes occupy a link of a rate, to the nearest
// picosecond. A link of rate zero takes Forever. It panics when bytes or rate
// is negative.
func Transmit(bytes int64, rate model.Rate) Time {
	if bytes < 0 || rate < 0 {
		panic("engine: Transmit of " + strconv.FormatInt(bytes, 10) + " bytes at " + rate.String())
	}
	hi, lo := bits.Mul64(uint64(bytes), 8*uint64(Second))
	lo, carry := bits.Add64(lo, uint64(rate)/2, 0)
	hi += carry
	if hi >= uint64(rate) {
		return Forever
	}
	ps, _ := bits.Div64(hi, lo, uint64(rate))
	return Time(min(ps, uint64(Forever)))
}

// TransmitNS3 is Transmit as ns-3 computes it: through seconds in a double,
// truncated to 64 bits of fraction and then to whole nanoseconds. 1048 bytes at
// 100 Gb/s take 83 ns, not 83.84.
func TransmitNS3(bytes int64, rate model.Rate) Time {
	return OfNS3(float64(bytes) * 8 / float64(rate))
}

// OfNS3 converts seconds, which must not be negative, as ns-3 does: it
// truncates to whole nanoseconds, also where the double is just below one. 60
// bytes at 40 Gb/s take 11 ns, not 12.
func OfNS3(seconds float64) Time {
	whole, fraction := math.Modf(seconds)
	if whole >= float64(Forever/Second) {
		return Forever
	}
	ns, _ := bits.Mul64(uint64(fraction*0x1p64), uint64(Second/Nanosecond))
	return Time(whole)*Second + Time(ns)*Nanosecond
}
