package engine

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

func TestTransmit(t *testing.T) {
	for name, tc := range map[string]struct {
		bytes int64
		rate  model.Rate
		want  Time
	}{
		"nothing":                  {0, model.Gbps, 0},
		"a byte at 400 Gb/s":       {1, 400 * model.Gbps, 20},
		"a frame at 100 Gb/s":      {1048, 100 * model.Gbps, 83840},
		"a frame at 25 Gb/s":       {1500, 25 * model.Gbps, 480 * Nanosecond},
		"a third rounds down":      {1, 24 * model.Tbps, 0},
		"a half rounds up":         {1, 16 * model.Tbps, 1},
		"two thirds round up":      {1, 12 * model.Tbps, 1},
		"eight seconds":            {1, 1, 8 * Second},
		"a terabyte at 1 Gb/s":     {1e12, model.Gbps, 8000 * Second},
		"106 days and no more":     {1152921504606846975, 1_000_000_000_000, Forever - 7},
		"longer than any run":      {math.MaxInt64, model.Gbps, Forever},
		"a link that does nothing": {1, 0, Forever},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Transmit(tc.bytes, tc.rate); got != tc.want {
				t.Errorf("Transmit(%d, %v) = %v; want %v", tc.bytes, tc.rate, got, tc.want)
			}
		})
	}
}

func TestTransmitPanics(t *testing.T) {
	for _, tc := range []struct {
		bytes int64
		rate  model.Rate
	}{{-1, model.Gbps}, {1, -model.Gbps}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Transmit(%d, %v) returns; want a panic", tc.bytes, tc.rate)
				}
			}()
			Transmit(tc.bytes, tc.rate)
		}()
	}
}

// TestTransmitIsExact compares with numbers of any size.
func TestTransmitIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.OneOf(rapid.Int64Range(0, 1e7), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "bytes")
		rate := rapid.OneOf(rapid.Int64Range(1e6, 1e12), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "rate")
		// floor((2·bits + rate) / (2·rate)) with bits in units of rate × ps
		n := new(big.Int).Mul(big.NewInt(bytes), big.NewInt(16e12))
		n.Add(n, big.NewInt(rate))
		n.Div(n, new(big.Int).Mul(big.NewInt(2), big.NewInt(rate)))
		want := Forever
		if n.IsInt64() {
			want = Time(n.Int64())
		}
		if got := Transmit(bytes, model.Rate(rate)); got != want {
			t.Fatalf("Transmit(%d, %d b/s) = %d; want %d", bytes, rate, got, want)
		}
	})
}

func TestTimeConversions(t *testing.T) {
	for _, tc := range []struct {
		t     Time
		model model.Time
		text  string
	}{
		{0, 0, "0ps"},
		{999, 0, "999ps"},
		{1000, 1, "1ns"},
		{83840, 83, "83.84ns"},
		{1_000_320, 1000, "1.00032µs"},
		{50 * Microsecond, 50_000, "50µs"},
		{Millisecond + 1, 1_000_000, "1.000000001ms"},
		{12*Second + 500*Millisecond, 12_500_000_000, "12.5s"},
		{Forever, 9_223_372_036_854_775, "forever"},
		{-1, -1, "-1ps"},
		{-1000, -1, "-1ns"},
		{-Forever, -9_223_372_036_854_776, "-forever"},
		{math.MinInt64, -9_223_372_036_854_776, "-9223372.036854775808s"},
	} {
		if got := tc.t.Model(); got != tc.model {
			t.Errorf("Time(%d).Model() = %d; want %d", int64(tc.t), int64(got), int64(tc.model))
		}
		if got := tc.t.Duration(); got != time.Duration(tc.model) {
			t.Errorf("Time(%d).Duration() = %d; want %d", int64(tc.t), int64(got), int64(tc.model))
		}
		if got := tc.t.String(); got != tc.text {
			t.Errorf("Time(%d).String() = %q; want %q", int64(tc.t), got, tc.text)
		}
	}
	for d, want := range map[time.Duration]Time{
		0:                      0,
		1500 * time.Nanosecond: 1500 * Nanosecond,
		-time.Second:           -Second,
		26 * 24 * time.Hour:    26 * 86400 * Second,
		27 * 24 * time.Hour:    longest,
		math.MaxInt64:          longest,
		math.MinInt64:          -longest,
	} {
		if got := Of(d); got != want {
			t.Errorf("Of(%v) = %v; want %v", d, got, want)
		}
	}
	if most := Of(math.MaxInt64); most+most+most < most || most%Nanosecond != 0 {
		t.Errorf("Of(longest) = %v; want whole nanoseconds that can be added up", most)
	}
}

func BenchmarkTransmit(b *testing.B) {
	bytes := int64(64)
	for b.Loop() {
		bytes = 64 + int64(Transmit(bytes, 100*model.Gbps))%1024
	}
}

// The expected values follow ns-3's steps with big numbers.
func TestNS3Times(t *testing.T) {
	slow := func(seconds float64) Time {
		v, _ := new(big.Float).SetMantExp(big.NewFloat(seconds), 64).Int(nil) // 64 bits of fraction
		v.Mul(v, big.NewInt(1e9)).Rsh(v, 64)
		return Time(v.Int64()) * Nanosecond
	}
	for _, c := range []struct {
		bytes int64
		rate  model.Rate
		want  Time
	}{
		{1048, 100 * model.Gbps, 83 * Nanosecond},
		{60, 100 * model.Gbps, 4 * Nanosecond},
		{43, 100 * model.Gbps, 3 * Nanosecond},
		{1048, 25 * model.Gbps, 335 * Nanosecond},
		{1090, 400 * model.Gbps, 21 * Nanosecond},
		{43, 400 * model.Gbps, 0},
		{60, 40 * model.Gbps, 11 * Nanosecond}, // 1.2e-8 has no exact double
		{125, 1, 1000 * Second},
	} {
		if got := TransmitNS3(c.bytes, c.rate); got != c.want || got != slow(float64(c.bytes)*8/float64(c.rate)) {
			t.Errorf("TransmitNS3(%d, %v) = %v; want %v", c.bytes, c.rate, got, c.want)
		}
	}
	if got := TransmitNS3(1, 0); got != Forever {
		t.Errorf("TransmitNS3(1, 0) = %v; want forever", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.Float64Range(0, 1e6).Draw(t, "seconds")
		if got, want := OfNS3(s), slow(s); got != want {
			t.Fatalf("OfNS3(%v) = %v; want %v", s, got, want)
		}
	})
}
