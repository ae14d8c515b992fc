package report

import (
	"math"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// The functions here print for people: three digits and a unit. Files for
// programs have exact numbers.

// digits prints v, which is not negative, with about three significant digits.
func digits(v float64) string {
	decimals := 2
	switch {
	case v == math.Trunc(v) || v >= 99.95:
		decimals = 0
	case v >= 9.995:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// scaled prints v in the largest of the units that are 1000 apart.
func scaled(v float64, units ...string) string {
	i := 0
	for v >= 999.5 && i < len(units)-1 {
		v /= 1000
		i++
	}
	if units[i] == "" {
		return digits(v)
	}
	return digits(v) + " " + units[i]
}

func showBytes(n model.Bytes) string { return scaled(float64(n), "B", "kB", "MB", "GB", "TB") }

func showRate(r model.Rate) string { return scaled(float64(r), "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s") }

// showDuration prints a duration; a negative one, which only a wrong clock
// could cause, keeps its sign.
func showDuration(d time.Duration) string {
	if d < 0 {
		return "-" + showDuration(-max(d, math.MinInt64+1))
	}
	return scaled(float64(d), "ns", "µs", "ms", "s")
}

// showAmount prints a large count: "12.3 M".
func showAmount(v float64) string { return scaled(v, "", "k", "M", "G", "T") }

// showCount prints a count in full: "12,345".
func showCount[N int | uint64](n N) string {
	s := decimal(uint64(n))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func showPercent(share float64) string {
	return strconv.FormatFloat(share*100, 'f', 1, 64) + " %"
}

// showSlowdown keeps two decimals, so that columns align, up to 1000.
func showSlowdown(v float64) string {
	if v >= 1000 {
		return showCount(uint64(v))
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func countOf(n int, noun string) string {
	return showCount(n) + " " + plural.Noun(n, noun)
}
