package epoch

import (
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

var (
	samplePauses = Intervals{
		Port: 1, Priority: 3, Open: true, Count: 2,
		List: [MaxIntervals]Interval{{Start: 0x3000, End: 0x2000, Bytes: 0x10000}, {Start: 0x1000, Bytes: 0x99}},
	}
	sampleCongestion = Intervals{
		Congestion: true, Port: 1, Priority: 3, Earlier: Earlier{Count: 7, Start: 0x9000, End: 0x5000, Total: 0x800, Bytes: 0x77},
		Count: 1, List: [MaxIntervals]Interval{{Start: 0x3000, End: 0x2000, Bytes: 0x10000}},
	}
	sampleSettings = Settings{
		CongestionThreshold: 4 * time.Microsecond, PauseBurstGap: PauseBurstGap, IntervalMemory: 10 * time.Millisecond,
		MTU: 4200, Xoff: 0x10000, Xon: 0x8000, PauseIntervals: 16, CongestionIntervals: 8,
	}
)

const (
	pausesHex     = "0c 1e 0001 03 01 00003000 00002000 00010000 00001000 00000000 00000099"
	congestionHex = "0d 26 0001 03 02 00000007 00009000 00005000 00000800 00000077 00003000 00002000 00010000"
	settingsHex   = "0e 1c 00000fa0 000186a0 00989680 00001068 00010000 00008000 10 08"
)

func TestIntervalRecords(t *testing.T) {
	t.Run("pauses", func(t *testing.T) {
		testRecord(t, pausesHex, samplePauses, sampleCongestion, map[int]byte{4: 8, 5: 4})
	})
	t.Run("congestion", func(t *testing.T) {
		testRecord(t, congestionHex, sampleCongestion, samplePauses, map[int]byte{4: 0xff, 5: 0x80, 9: 0})
	})
	t.Run("settings", func(t *testing.T) {
		testRecord(t, settingsHex, sampleSettings, Settings{MTU: 9}, nil)
	})
	t.Run("full", func(t *testing.T) {
		full := sampleCongestion
		for i := range 20 {
			full.Add(Interval{Start: Age(40 - 2*i), End: Age(39 - 2*i)}) // beyond 16 it is ignored
		}
		b := full.AppendTo(nil)
		var got Intervals
		if n, err := got.Parse(b); n != MaxIntervalsSize || len(b) != n || err != nil || got != full || len(got.All()) != MaxIntervals {
			t.Errorf("Parse(%x) = %d, %v, %+v; want %d, nil, %+v", b, n, err, got, MaxIntervalsSize, full)
		}
	})
}

// TestImpossibleIntervalsAreRefused: a switch that claims them is broken or lies.
func TestImpossibleIntervalsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(v *Intervals)
		want   error
	}{
		"as it is":                      {func(*Intervals) {}, nil},
		"touching":                      {func(v *Intervals) { v.List[1].Start = v.List[0].End }, nil},
		"reversed":                      {func(v *Intervals) { v.List[0].Start, v.List[0].End = 0x2000, 0x3000 }, ErrIntervals},
		"overlapping":                   {func(v *Intervals) { v.List[1].Start = 0x2001 }, ErrIntervals},
		"out of order":                  {func(v *Intervals) { v.List[0], v.List[1] = v.List[1], v.List[0] }, ErrIntervals},
		"open but ended":                {func(v *Intervals) { v.List[1].End = 1 }, ErrIntervals},
		"ended, not open":               {func(v *Intervals) { v.List[1].End, v.Open = 1, false }, nil},
		"summary reversed":              {func(v *Intervals) { v.Earlier = Earlier{Count: 1, Start: 0x3000, End: 0x4000} }, ErrIntervals},
		"summary overlaps":              {func(v *Intervals) { v.Earlier = Earlier{Count: 1, Start: 0x4000, End: 0x2fff} }, ErrIntervals},
		"summary touches":               {func(v *Intervals) { v.Earlier = Earlier{Count: 1, Start: 0x4000, End: 0x3000, Total: 0x1000} }, nil},
		"longer than from start to end": {func(v *Intervals) { v.Earlier = Earlier{Count: 1, Start: 0x4000, End: 0x3000, Total: 0x1001} }, ErrIntervals},
	} {
		t.Run(name, func(t *testing.T) {
			v := samplePauses
			tc.change(&v)
			var got Intervals
			_, err := got.Parse(v.AppendTo(nil))
			if tc.want != nil {
				v = Intervals{}
			}
			if err != tc.want || got != v {
				t.Errorf("Parse = %+v, %v; want %+v, %v", got, err, v, tc.want)
			}
		})
	}
	// No length but these: a flag and a length that do not agree, no interval at all,
	// and one more than the most.
	b := samplePauses.AppendTo(nil)
	b[5] = intervalEarlier
	if _, err := new(Intervals).Parse(b); err != ErrRecord {
		t.Errorf("Parse(%x) = %v; want %v", b, err, ErrRecord)
	}
	for n := range 256 {
		k := n - intervalsHead
		want := k >= 12 && k <= 16*12 && k%12 == 0 || k >= 20+12 && k <= 20+16*12 && (k-20)%12 == 0
		if isIntervalsSize(n) != want {
			t.Errorf("isIntervalsSize(%d) = %v; want %v", n, !want, want)
		}
	}
}

func TestAgeSaturates(t *testing.T) {
	for _, tc := range []struct {
		snapshot, at model.Time
		want         Age
	}{
		{1000, 400, 600},
		{1000, 1000, 0},
		{1000, 1001, 0},
		{0, -math.MaxUint32 + 1, MaxAge - 1},
		{0, -math.MaxUint32, MaxAge},
		{math.MaxInt64, math.MinInt64, MaxAge},
		{math.MinInt64, math.MaxInt64, 0},
	} {
		if got := AgeAt(tc.snapshot, tc.at); got != tc.want {
			t.Errorf("AgeAt(%d, %d) = %d; want %d", tc.snapshot, tc.at, got, tc.want)
		}
	}
	s := Settings{CongestionThreshold: -1, PauseBurstGap: math.MaxInt64, Xoff: 1 << 40}
	var got Settings
	_, _ = got.Parse(s.AppendTo(nil))
	if want := (Settings{PauseBurstGap: math.MaxUint32, Xoff: math.MaxUint32}); got != want {
		t.Errorf("settings %+v; want %+v", got, want)
	}
}

// TestIntervalsBeyondAChunkAreCounted: a small chunk holds every other record.
func TestIntervalsBeyondAChunkAreCounted(t *testing.T) {
	v := sampleCongestion
	for range MaxIntervals {
		v.Add(Interval{})
	}
	for size, dropped := range map[int]uint32{Overhead + MaxIntervalsSize - 1: 1, Overhead + MaxIntervalsSize: 0} {
		var b Builder
		if err := b.Reset(Header{EpochLength: 1}, size, 9); err != nil {
			t.Fatal(err)
		}
		b.AddIntervals(&v)
		b.Finish()
		var c Chunk
		if _, err := c.Parse(b.Chunk(0)); err != nil || c.Dropped != dropped || (c.Flags&Truncated != 0) != (dropped > 0) {
			t.Errorf("chunks of %d bytes: %v, %+v; want %d dropped", size, err, c.Header, dropped)
		}
	}
}

func FuzzIntervals(f *testing.F) { fuzzRecord[Intervals](f, pausesHex, congestionHex) }
func FuzzSettings(f *testing.F)  { fuzzRecord[Settings](f, settingsHex) }

func TestIntervalAllocs(t *testing.T) {
	var v Intervals
	var s Settings
	buf := make([]byte, 0, MaxIntervalsSize)
	if n := testing.AllocsPerRun(100, func() {
		buf = sampleCongestion.AppendTo(buf[:0])
		_, _ = v.Parse(buf)
		buf = sampleSettings.AppendTo(buf[:0])
		_, _ = s.Parse(buf)
	}); n != 0 {
		t.Errorf("Parse and AppendTo allocate %v times", n)
	}
}
