package model

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFormat(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{FormatDuration(76912 * time.Nanosecond), "76.9 µs"},
		{FormatDuration(0), "0 ns"},
		{FormatDuration(999 * time.Nanosecond), "999 ns"},
		{FormatDuration(999_900 * time.Nanosecond), "1 ms"},
		{FormatDuration(1500 * time.Microsecond), "1.5 ms"},
		{FormatDuration(-2345 * time.Nanosecond), "-2.35 µs"},
		{FormatDuration(90 * time.Second), "90 s"},
		{FormatDuration(2 * time.Minute), "2 min"},
		{FormatDuration(3 * time.Hour), "3 h"},
		{FormatRate(16_412_345_678), "16.4 Gb/s"},
		{FormatRate(100_000_000_000), "100 Gb/s"},
		{FormatRate(12), "12 b/s"},
		{FormatBytes(3_210_999), "3.21 MB"},
		{FormatBytes(1_000), "1 kB"},
		{FormatShare(0.0497), "4.97 %"},
		{FormatShare(1), "100 %"},
		{FormatShare(0), "0 %"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

// What a person reads is never further from the value than three digits allow.
func TestFormatIsNear(t *testing.T) {
	units := map[string]float64{"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(-1<<60, 1<<60).Draw(t, "d") >> rapid.IntRange(0, 60).Draw(t, "shift"))
		number, unit, ok := strings.Cut(FormatDuration(d), " ")
		v, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || units[unit] == 0 {
			t.Fatalf("FormatDuration(%d) = %q", d, FormatDuration(d))
		}
		if off := math.Abs(v*units[unit] - float64(d)); off > 0.00501*math.Abs(float64(d)) {
			t.Fatalf("FormatDuration(%d) = %q, off by %g ns", d, FormatDuration(d), off)
		}
	})
}
