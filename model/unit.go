package model

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Rate is a speed in bits per second.
type Rate int64

// Rates by unit.
const (
	Kbps Rate = 1e3
	Mbps Rate = 1e6
	Gbps Rate = 1e9
	Tbps Rate = 1e12
)

// Bytes is an amount of memory or traffic.
type Bytes int64

// Amounts by unit.
const (
	KB  Bytes = 1e3
	MB  Bytes = 1e6
	GB  Bytes = 1e9
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// unit is one suffix and what it multiplies by.
type unit struct {
	suffix string
	scale  int64
}

// Both lists run from the largest unit to the smallest, the printed spelling
// of a size first.
var (
	rateUnits = []unit{
		{"Tb/s", 1e12},
		{"Gb/s", 1e9},
		{"Mb/s", 1e6},
		{"kb/s", 1e3},
		{"b/s", 1},
	}
	byteUnits = []unit{
		{"TB", 1e12},
		{"GB", 1e9},
		{"MB", 1e6},
		{"KB", 1e3},
		{"B", 1},
	}
	binaryUnits = []unit{
		{"TiB", 1 << 40},
		{"GiB", 1 << 30},
		{"MiB", 1 << 20},
		{"KiB", 1 << 10},
	}
)

// String prints the rate exactly, in the largest unit not above it: "100Gb/s",
// "1.5Mb/s".
func (r Rate) String() string { return formatUnit(int64(r), rateUnits) }

// MarshalText writes String's form.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what ParseRate reads.
func (r *Rate) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRate(string(b))
	return err
}

// ParseRate reads a rate such as "100Gb/s", "100Gbps", "25G" or "1000000".
func ParseRate(s string) (Rate, error) {
	// Every spelling in use is a letter and then one of a few endings.
	body := strings.ToLower(strings.TrimSpace(s))
	for _, end := range []string{"bit/s", "bits/s", "bps", "b/s"} {
		if cut, ok := strings.CutSuffix(body, end); ok {
			body = cut
			break
		}
	}
	v, err := parseUnit(body, []unit{{"t", 1e12}, {"g", 1e9}, {"m", 1e6}, {"k", 1e3}, {"", 1}})
	if err != nil {
		return 0, fmt.Errorf("rate %q: %w, want a number and a unit such as 100Gb/s", s, err)
	}
	return Rate(v), nil
}

// String prints the amount exactly: in a binary unit when it is a whole number
// of one ("4KiB"), otherwise, or where that is shorter ("10GB"), in the largest
// decimal unit not above it ("1.5MB").
func (n Bytes) String() string {
	decimal := formatUnit(int64(n), byteUnits)
	for _, u := range binaryUnits {
		if n != 0 && int64(n)%u.scale == 0 {
			if binary := strconv.FormatInt(int64(n)/u.scale, 10) + u.suffix; len(binary) <= len(decimal) {
				return binary
			}
			break
		}
	}
	return decimal
}

// MarshalText writes String's form.
func (n Bytes) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads what ParseBytes reads.
func (n *Bytes) UnmarshalText(b []byte) (err error) {
	*n, err = ParseBytes(string(b))
	return err
}

// ParseBytes reads an amount such as "32MB" (decimal), "4KiB" (binary) or
// "1500".
func ParseBytes(s string) (Bytes, error) {
	body := strings.ToLower(strings.TrimSpace(s))
	v, err := parseUnit(body, []unit{
		{"tib", 1 << 40},
		{"gib", 1 << 30},
		{"mib", 1 << 20},
		{"kib", 1 << 10},
		{"tb", 1e12},
		{"gb", 1e9},
		{"mb", 1e6},
		{"kb", 1e3},
		{"b", 1},
		{"", 1},
	})
	if err != nil {
		return 0, fmt.Errorf("size %q: %w, want a number and a unit such as 32MB or 4KiB", s, err)
	}
	return Bytes(v), nil
}

var (
	errNotNumber = errors.New("not a number")
	errTooLarge  = errors.New("too many digits")
	errTooFine   = errors.New("finer than one base unit")
)

// formatUnit prints v exactly in the largest unit not above it.
func formatUnit(v int64, units []unit) string {
	sign, abs := "", uint64(v)
	if v < 0 {
		sign, abs = "-", -abs
	}
	for i, u := range units {
		scale := uint64(u.scale)
		if abs < scale && i < len(units)-1 {
			continue
		}
		out := sign + strconv.FormatUint(abs/scale, 10)
		if rest := abs % scale; rest != 0 {
			digits := len(strconv.FormatUint(scale, 10)) - 1
			frac := fmt.Sprintf("%0*d", digits, rest)
			out += "." + strings.TrimRight(frac, "0")
		}
		return out + u.suffix
	}
	panic("model: the last unit takes every value")
}

// parseUnit reads a decimal number and one of the suffixes, exactly: no value
// passes through a float. What is not a whole number of the base unit is
// refused.
func parseUnit(s string, units []unit) (int64, error) {
	scale := uint64(1)
	for _, u := range units {
		if cut, ok := strings.CutSuffix(s, u.suffix); ok {
			s, scale = strings.TrimSpace(cut), uint64(u.scale)
			break
		}
	}
	s, negative := strings.CutPrefix(s, "-")
	whole, frac, dotted := strings.Cut(s, ".")
	if !allDigits(whole) || dotted && !allDigits(frac) {
		return 0, errNotNumber
	}
	frac = strings.TrimRight(frac, "0")
	mantissa, err := strconv.ParseUint(whole+frac, 10, 64)
	if err != nil || len(frac) > 18 {
		return 0, errTooLarge
	}
	pow := uint64(1)
	for range frac {
		pow *= 10
	}
	hi, lo := bits.Mul64(mantissa, scale)
	if hi >= pow {
		return 0, errTooLarge
	}
	v, rest := bits.Div64(hi, lo, pow)
	if rest != 0 {
		return 0, errTooFine
	}
	if negative && v <= 1<<63 {
		return -int64(v), nil
	}
	if v > math.MaxInt64 {
		return 0, errTooLarge
	}
	return int64(v), nil
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
