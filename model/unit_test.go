package model

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseRate(t *testing.T) {
	for in, want := range map[string]Rate{
		"100Gb/s": 100 * Gbps, "100Gbps": 100 * Gbps, "100gbit/s": 100 * Gbps, "25G": 25 * Gbps,
		"1000Mb/s": Gbps, "1.5Mb/s": 1500 * Kbps, "0.4 Tb/s": 400 * Gbps, "9600": 9600, "12b/s": 12,
		"0": 0, "0.001kb/s": 1, "9223372036854775807": math.MaxInt64,
	} {
		if got, err := ParseRate(in); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "Gb/s", "fast", "1.2.3G", "1e9", "0.5b/s", "1.0000000001G", "10Tb/sx", "9223372036854775808", "10000000000G", "+5G", "1.", ".5G"} {
		if got, err := ParseRate(in); err == nil {
			t.Errorf("ParseRate(%q) = %d, nil; want an error", in, got)
		} else if !strings.Contains(err.Error(), "want") {
			t.Errorf("ParseRate(%q) = %v; want an error that says what is wanted", in, err)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for in, want := range map[string]Bytes{
		"32MB": 32 * MB, "4KiB": 4096, "4 kib": 4096, "1500": 1500, "9000B": 9000,
		"0.5KiB": 512, "1.5MB": 1500000, "0.25MiB": 256 * KiB, "-3KB": -3000,
	} {
		if got, err := ParseBytes(in); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "MB", "1.0001KiB", "4KiBs", "--3"} {
		if got, err := ParseBytes(in); err == nil {
			t.Errorf("ParseBytes(%q) = %d, nil; want an error", in, got)
		}
	}
}

func TestUnitsPrint(t *testing.T) {
	for got, want := range map[string]string{
		(100 * Gbps).String(): "100Gb/s", Rate(1234567).String(): "1.234567Mb/s", Rate(0).String(): "0b/s",
		Rate(-1500).String(): "-1.5kb/s",
		Bytes(4096).String(): "4KiB", (12 * MB).String(): "12MB", (10 * GB).String(): "10GB", (1000 * KiB).String(): "1000KiB", Bytes(1500).String(): "1.5KB", Bytes(0).String(): "0B",
	} {
		if got != want {
			t.Errorf("String() = %q; want %q", got, want)
		}
	}
}

func TestUnitsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v")
		if got, err := ParseRate(Rate(v).String()); err != nil || got != Rate(v) {
			t.Fatalf("ParseRate(%q) = %d, %v; want %d", Rate(v), got, err, v)
		}
		if got, err := ParseBytes(Bytes(v).String()); err != nil || got != Bytes(v) {
			t.Fatalf("ParseBytes(%q) = %d, %v; want %d", Bytes(v), got, err, v)
		}
		if got, err := ParseTime(Time(v).String()); err != nil || got != Time(v) {
			t.Fatalf("ParseTime(%q) = %d, %v; want %d", Time(v), got, err, v)
		}
	})
}

func TestTime(t *testing.T) {
	wall := time.Date(2026, 1, 2, 15, 4, 5, 678, time.UTC)
	for got, want := range map[string]string{
		TimeOf(wall).String():                   "2026-01-02T15:04:05.000000678Z",
		Time(0).Add(1500 * 1000).String():       "+1.5ms",
		Time(-5).String():                       "-5ns",
		TimeOf(wall).Sub(TimeOf(wall)).String(): "0s",
	} {
		if got != want {
			t.Errorf("String() = %q; want %q", got, want)
		}
	}
	for _, in := range []string{"", "1.5ms", "yesterday", "+5", "3000-01-01T00:00:00Z"} {
		if got, err := ParseTime(in); err == nil {
			t.Errorf("ParseTime(%q) = %d, nil; want an error", in, got)
		}
	}
}

func TestUnitsInJSON(t *testing.T) {
	type record struct {
		At   Time
		Rate Rate
		Size Bytes
		Flow FlowKey
	}
	in := record{Time(2500), 25 * Gbps, 64 * KiB, key("10.0.0.2:40000", "10.0.1.2:80", TCP)}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"At":"+2.5µs","Rate":"25Gb/s","Size":"64KiB","Flow":"tcp 10.0.0.2:40000 \u003e 10.0.1.2:80"}`
	if string(b) != want {
		t.Errorf("Marshal(%v) = %s; want %s", in, b, want)
	}
	var again record
	if err := json.Unmarshal(b, &again); err != nil || again != in {
		t.Errorf("Unmarshal(%s) = %v, %v; want %v", b, again, err, in)
	}
}

func TestProtoNames(t *testing.T) {
	for p := range 256 {
		if got, err := ParseProto(Proto(p).String()); err != nil || got != Proto(p) {
			t.Errorf("ParseProto(%q) = %d, %v; want %d", Proto(p), got, err, p)
		}
	}
}
