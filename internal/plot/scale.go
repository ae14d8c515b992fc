package plot

import (
	"math"
	"strconv"
)

// Scale maps values to pixels. At never leaves the pixel range and is finite
// for every input, so a plot of invalid data is still drawn.
type Scale struct {
	lo, hi   float64 // lo < hi, and 0 < lo where log
	from, to float64 // pixels of lo and hi
	log      bool
}

// bounded keeps the bounds of a domain where neither their difference nor their
// ratio overflows: within a googol. NaN is 0.
func bounded(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return min(max(v, -1e100), 1e100)
}

// Linear widens an empty domain: all values equal, or none.
func Linear(lo, hi, from, to float64) Scale {
	lo, hi = bounded(lo), bounded(hi)
	// Below a billionth of lo, ticks would run out of float digits.
	if least := max(math.Abs(lo)*1e-9, 1e-9); !(hi-lo >= least) {
		hi = lo + max(1, least)
	}
	return Scale{lo: lo, hi: hi, from: from, to: to}
}

// Logarithmic covers at least a factor of two.
func Logarithmic(lo, hi, from, to float64) Scale {
	lo, hi = bounded(lo), bounded(hi)
	if lo <= 0 {
		lo = 1
	}
	lo = max(lo, 1e-100)
	if !(hi >= lo*2) {
		hi = lo * 2
	}
	return Scale{lo: lo, hi: hi, from: from, to: to, log: true}
}

// At returns the pixel of a value.
func (s Scale) At(v float64) float64 {
	if !(v > s.lo) { // NaN too
		v = s.lo
	}
	v = min(v, s.hi)
	share := (v - s.lo) / (s.hi - s.lo)
	if s.log {
		share = math.Log(v/s.lo) / math.Log(s.hi/s.lo)
	}
	return s.from + share*(s.to-s.from)
}

// Invert returns the value drawn at a pixel.
func (s Scale) Invert(px float64) float64 {
	share := (px - s.from) / (s.to - s.from)
	if s.log {
		return s.lo * math.Pow(s.hi/s.lo, share)
	}
	return s.lo + share*(s.hi-s.lo)
}

// Ticks returns at most n+1 round values of the domain.
func (s Scale) Ticks(n int) []float64 {
	if s.log {
		return s.logTicks(n)
	}
	step := niceStep((s.hi - s.lo) / float64(n))
	var out []float64
	for i := math.Ceil(s.lo / step); i*step <= s.hi*(1+1e-12); i++ {
		out = append(out, i*step)
	}
	return out
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(rough float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, m := range []float64{1, 2, 5} {
		if rough <= m*p*(1+1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// logTicks takes the finest of these sets that has at most n visible values.
func (s Scale) logTicks(n int) []float64 {
	sets := [][]float64{
		{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, 2.5, 3, 4, 5, 6, 7, 8, 9},
		{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8},
		{1, 1.5, 2, 3, 5, 7},
		{1, 2, 5},
		{1},
	}
	low, high := int(math.Floor(math.Log10(s.lo))), int(math.Ceil(math.Log10(s.hi)))
	var out []float64
	for _, set := range sets {
		out = out[:0]
		for e := low; e <= high; e++ {
			for _, m := range set {
				if v := m * math.Pow10(e); v >= s.lo*(1-1e-9) && v <= s.hi*(1+1e-9) {
					out = append(out, v)
				}
			}
		}
		if len(out) <= n {
			return out
		}
	}
	// Many decades: every second, third, … of them.
	every := (len(out) + n - 1) / n
	kept := out[:0]
	for i := 0; i < len(out); i += every {
		kept = append(kept, out[i])
	}
	return kept
}

// Unit is how an axis prints its numbers.
type Unit struct {
	Name string
	Size float64
}

// TimeUnit suits a span of nanoseconds.
func TimeUnit(ns float64) Unit {
	switch {
	case ns >= 2e9:
		return Unit{"s", 1e9}
	case ns >= 2e6:
		return Unit{"ms", 1e6}
	case ns >= 2e3:
		return Unit{"µs", 1e3}
	}
	return Unit{"ns", 1}
}

// BytesUnit suits sizes up to most.
func BytesUnit(most float64) Unit {
	switch {
	case most >= 2e9:
		return Unit{"GB", 1e9}
	case most >= 2e6:
		return Unit{"MB", 1e6}
	case most >= 2e3:
		return Unit{"KB", 1e3}
	}
	return Unit{"B", 1}
}

// Label prints a tick in the unit, without the digits that float noise adds.
func (u Unit) Label(v float64) string {
	return strconv.FormatFloat(math.Round(v/u.Size*1e6)/1e6, 'f', -1, 64)
}
