package model

import (
	"math"
	"strconv"
	"time"
)

// People read three significant digits; programs read JSON, which keeps all of
// them. These functions write the former: "16.4 Gb/s", "76.9 µs", "3.21 MB".

// FormatDuration writes d for a person, as "76.9 µs".
func FormatDuration(d time.Duration) string {
	switch a := math.Abs(float64(d)); {
	case a >= 99.95*60e9:
		return format3(d.Hours()) + " h"
	case a >= 99.95e9:
		return format3(d.Minutes()) + " min"
	}
	return scaled(float64(d), []scale{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}})
}

// FormatRate writes r for a person, as "16.4 Gb/s".
func FormatRate(r Rate) string {
	return scaled(float64(r), []scale{{1, "b/s"}, {1e3, "kb/s"}, {1e6, "Mb/s"}, {1e9, "Gb/s"}, {1e12, "Tb/s"}})
}

// FormatBytes writes n for a person, in powers of ten as the field does, as
// "3.21 MB".
func FormatBytes(n Bytes) string {
	return scaled(float64(n), []scale{{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}})
}

// FormatShare writes a share for a person, as "4.97 %".
func FormatShare(share float64) string { return format3(100*share) + " %" }

type scale struct {
	of   float64
	name string
}

// scaled picks the largest unit in which v, rounded to three digits, is at
// least one, so that 999.9 µs is "1 ms" and not "1000 µs".
func scaled(v float64, units []scale) string {
	best := units[0]
	for _, u := range units[1:] {
		if math.Abs(v) >= 0.9995*u.of {
			best = u
		}
	}
	return format3(v/best.of) + " " + best.name
}

// format3 writes v with three significant digits and no zeros after the point
// that say nothing; digits before the point all stay.
func format3(v float64) string {
	digits := 0
	if a := math.Abs(v); a > 0 && a < 99.95 {
		digits = max(0, 2-int(math.Floor(math.Log10(a*1.0005))))
	}
	digits = min(digits, 9)
	v = math.Round(v*math.Pow10(digits)) / math.Pow10(digits)
	return strconv.FormatFloat(v, 'f', -1, 64)
}
