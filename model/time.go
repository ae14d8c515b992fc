package model

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Time is an instant of one device's clock in nanoseconds: since the Unix
// epoch on real devices, since the start of the run in a simulation. It spans
// the years 1678 to 2262. Two devices' Times differ by offset and drift; only
// differences of one device's Times are exact. A span is a time.Duration.
type Time int64

// runHorizon separates the two kinds when printing: no run lasts 11 days of
// simulated time, and no wall clock shows January 1970.
const runHorizon = Time(1e15)

// TimeOf converts a wall-clock instant.
func TimeOf(t time.Time) Time { return Time(t.UnixNano()) }

// Add returns the instant d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the span from u to t, which is negative when u is later.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// String prints a wall-clock instant as RFC 3339 in UTC and an instant of a
// run as the span since its start, with a sign: "+1.5ms". ParseTime reads both.
func (t Time) String() string {
	if t > -runHorizon && t < runHorizon {
		if t < 0 {
			return time.Duration(t).String()
		}
		return "+" + time.Duration(t).String()
	}
	return time.Unix(0, int64(t)).UTC().Format(time.RFC3339Nano)
}

// MarshalText writes String's form, so JSON and YAML carry it.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what ParseTime reads.
func (t *Time) UnmarshalText(b []byte) error {
	v, err := ParseTime(string(b))
	if err != nil {
		return err
	}
	*t = v
	return nil
}

// ParseTime reads an RFC 3339 instant or a signed span since the start of a
// run.
func ParseTime(s string) (Time, error) {
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		d, err := time.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf("time %q, want a span such as +1.5ms", s)
		}
		return Time(d), nil
	}
	w, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, fmt.Errorf("time %q, want RFC 3339 (2026-01-02T15:04:05Z) or a span such as +1.5ms", s)
	}
	if w.Before(time.Unix(0, math.MinInt64)) || w.After(time.Unix(0, math.MaxInt64)) {
		return 0, fmt.Errorf("time %q, want a year from 1678 to 2261", s)
	}
	return TimeOf(w), nil
}
