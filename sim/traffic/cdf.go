package traffic

import (
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
)

// Bounds of a distribution's file.
const (
	maxPoints  = 1 << 20
	maxCDFFile = maxPoints * 64
)

// CDF is a distribution of flow sizes, straight between its points. It never
// changes, so any number of generators may share it.
type CDF struct {
	// Invariant: at least two points; both coordinates ascend, equal ones
	// included; share runs from 0 to 1.
	size  []float64 // bytes
	share []float64 // of the flows, up to that size
}

// ParseCDF reads lines of "bytes cumulative%", the format of the HPCC
// simulator's generator: from 0 % to 100 %, both ascending. Two lines may share
// a size (that share of flows has exactly that one) or a percentage (no flow lies
// between). Empty lines and what follows a # are skipped. Every error is an
// *Error.
func ParseCDF(name string, data []byte) (*CDF, error) {
	c := &CDF{}
	line, before := 0, 0.0 // percentage of the last point
	complain := func(format string, args ...any) (*CDF, error) {
		return nil, fileerror.Errorf(name, line, format, args...)
	}
	for text := range strings.Lines(string(data)) {
		line++
		text, _, _ = strings.Cut(text, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			return complain("%d words, want a size in bytes and a cumulative percentage", len(words))
		}
		size, err := strconv.ParseUint(words[0], 10, 64)
		if err != nil || size > uint64(MaxBytes) {
			return complain("size %q, want a whole number of bytes from 0 to %d", words[0], MaxBytes)
		}
		percent, ok := parseDecimal(words[1])
		if !ok || percent > 100 {
			return complain("cumulative percentage %q, want a number from 0 to 100", words[1])
		}
		last := len(c.size) - 1
		switch {
		case last < 0 && percent != 0:
			return complain("the first size has %v %%, want 0 %%", percent)
		case size == 0 && percent > 0:
			return complain("%v %% of the flows have size 0, want at least 1 byte", percent)
		case last >= 0 && float64(size) < c.size[last]:
			return complain("size %d after %v, want sizes that ascend", size, c.size[last])
		case last >= 0 && percent < before:
			return complain("%v %% after %v %%, want percentages that ascend", percent, before)
		case last+1 == maxPoints:
			return complain("more than %d sizes, want fewer", maxPoints)
		}
		c.size = append(c.size, float64(size))
		c.share = append(c.share, percent/100)
		before = percent
	}
	line = max(line, 1)
	if before != 100 {
		return complain("file ends at %v %%, want sizes up to 100 %%", before)
	}
	return c, nil
}

// Scaled returns the distribution of flows that are larger by a factor.
func (c *CDF) Scaled(by float64) *CDF {
	s := &CDF{size: make([]float64, len(c.size)), share: c.share}
	for i := range c.size {
		s.size[i] = c.size[i] * by
	}
	return s
}

// Mean returns the expected size in bytes.
func (c *CDF) Mean() float64 {
	sum := 0.0
	for i := 1; i < len(c.size); i++ {
		sum += (c.share[i] - c.share[i-1]) * (c.size[i-1] + c.size[i]) / 2
	}
	return sum
}

// Quantile returns the size that a share p of the flows does not exceed, p
// from 0 to 1, to the nearest byte and at least 1: no flow is empty.
func (c *CDF) Quantile(p float64) model.Bytes {
	i := sort.SearchFloat64s(c.share, p) // the first with share[i] >= p
	switch {
	case i == 0:
		return atLeastOne(c.size[0])
	case i == len(c.share):
		return atLeastOne(c.size[i-1])
	}
	along := (p - c.share[i-1]) / (c.share[i] - c.share[i-1])
	return atLeastOne(c.size[i-1] + along*(c.size[i]-c.size[i-1]))
}

func atLeastOne(size float64) model.Bytes { return max(1, model.Bytes(math.Round(size))) }

// Sample draws a size.
func (c *CDF) Sample(rng *rand.Rand) model.Bytes { return c.Quantile(rng.Float64()) }
