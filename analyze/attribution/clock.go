package attribution

import "github.com/weft-telemetry/weft/model"

// Answer is what can be said about an order of events on different clocks.
type Answer uint8

// Values of Answer.
const (
	No Answer = iota
	Maybe
	Yes
)

// String returns "no", "maybe" or "yes".
func (a Answer) String() string { return [...]string{"no", "maybe", "yes"}[min(a, Yes)] }

// before reports whether a was before b, if their clocks together are off by at
// most err. Equal times are not before each other.
func before(a, b, err float64) Answer {
	switch {
	case a+err < b:
		return Yes
	case a-err < b:
		return Maybe
	}
	return No
}

// within reports whether an instant lies in [from, to).
func within(at, from, to, err float64) Answer {
	started, ended := before(from, at, err), before(at, to, err)
	if started == No && from == at {
		started = Yes // an interval has its first instant
		if err > 0 {
			started = Maybe
		}
	}
	return min(started, ended)
}

// openUntil returns when an interval ends that was open at a snapshot. The packet may
// have arrived, or have been found missing, after it, in the end: then the interval
// went on until then, but no longer than it had lasted. Nothing is known of later.
func openUntil[T float64 | model.Time](from, snapshot, end T) T {
	return max(snapshot, min(end, snapshot+(snapshot-from)))
}
