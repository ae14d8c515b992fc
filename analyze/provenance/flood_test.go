package provenance

import (
	"errors"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

// TestBadRecordsLeaveNothingBehind: chunks of many snapshots whose record does not
// parse, each of a report that claims many chunks.
func TestBadRecordsLeaveNothingBehind(t *testing.T) {
	c, _ := NewCollector(DefaultConfig(8))
	good := report(7, poll.Event{Number: 1}, 1, 3)[0]
	var k epoch.Chunk
	if _, err := k.Parse(good); err != nil {
		t.Fatal(err)
	}
	// The priority does not exist.
	it := k.Reader()
	for it.Next() && it.Kind() != epoch.KindFlow4 {
	}
	it.Record()[10] = 0xff
	for i := range 1000 {
		k.Snapshot, k.Total = model.Time(i), 65535
		b := k.AppendTo(nil)
		if _, err := new(epoch.Chunk).Parse(b); err != nil {
			t.Fatalf("the chunk itself is bad: %v; want only its record to be", err)
		}
		if _, err := c.AddChunk(0, b); !errors.Is(err, epoch.ErrReserved) {
			t.Fatalf("AddChunk with a bad record = %v; want %v", err, epoch.ErrReserved)
		}
	}
	if n := len(c.snapshots); n != 0 || len(c.events) != 0 || c.Held() != 0 || c.Stats().Malformed != 1000 {
		t.Errorf("%d snapshots, %d detections, %v held, %+v; want nothing of 1000 bad chunks", n, len(c.events), c.Held(), c.Stats())
	}
}

// TestImpossibleIntervalsLeaveNothingBehind: a switch claims pauses that overlap,
// or settings that change within a report.
func TestImpossibleIntervalsLeaveNothingBehind(t *testing.T) {
	v := epoch.Intervals{Port: 1, Priority: 3}
	v.Add(epoch.Interval{Start: 30, End: 20})
	v.Add(epoch.Interval{Start: 10, End: 5})
	good := v.AppendTo(nil)
	overlapping := v
	overlapping.List[1].Start = 21
	reversed := v
	reversed.List[1].Start = 4
	future := v
	future.List[1].End = ^epoch.Age(0) // an age below 0
	settings := epoch.Settings{MTU: 1500}.AppendTo(nil)
	for name, tc := range map[string]struct {
		records [][]byte
		want    error
		stats   Stats
	}{
		"as it is":         {[][]byte{good, settings, settings}, nil, Stats{Chunks: 1}},
		"overlapping":      {[][]byte{good, overlapping.AppendTo(nil)}, epoch.ErrIntervals, Stats{Implausible: 1}},
		"reversed":         {[][]byte{good, reversed.AppendTo(nil)}, epoch.ErrIntervals, Stats{Implausible: 1}},
		"in the future":    {[][]byte{good, future.AppendTo(nil)}, epoch.ErrIntervals, Stats{Implausible: 1}},
		"changed settings": {[][]byte{settings, epoch.Settings{MTU: 1501}.AppendTo(nil)}, ErrConflict, Stats{Conflicts: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := NewCollector(DefaultConfig(8))
			k := epoch.Chunk{Header: epoch.Header{Switch: 7, EpochLength: 1}, Total: 1, Records: slices.Concat(tc.records...)}
			_, err := c.AddChunk(0, k.AppendTo(nil))
			if !errors.Is(err, tc.want) || c.Stats() != tc.stats {
				t.Fatalf("AddChunk = %v, %+v; want %v, %+v", err, c.Stats(), tc.want, tc.stats)
			}
			if err != nil && (len(c.snapshots) != 0 || len(c.events) != 0 || c.Held() != 0) {
				t.Errorf("%d snapshots, %d detections, %v held; want nothing", len(c.snapshots), len(c.events), c.Held())
			}
		})
	}
}

// TestReferencesToOneDetectionAreCheap: 80,000 answers of one switch cost the same
// each, and the newest few are kept.
func TestReferencesToOneDetectionAreCheap(t *testing.T) {
	c, _ := NewCollector(DefaultConfig(8))
	ev := poll.Event{Host: 1, Number: 1}
	for i := range 80_000 {
		if _, err := c.AddChunk(0, reference(7, ev, model.Time(i))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.events[ev].answers[7]); n != maxAnswers || len(c.snapshots) != maxAnswers || c.Stats().Excess != 80_000-maxAnswers {
		t.Errorf("%d answers, %d snapshots, %+v; want the newest %d", n, len(c.snapshots), c.Stats(), maxAnswers)
	}
	if _, err := c.AddChunk(0, reference(7, ev, 5)); !errors.Is(err, ErrExcess) {
		t.Errorf("an older answer = %v; want %v", err, ErrExcess)
	}
	i := model.Time(80_000)
	if n := testing.AllocsPerRun(100, func() {
		i++
		_, _ = c.AddChunk(0, reference(7, ev, i))
	}); n > 16 {
		t.Errorf("an answer allocates %v times; want at most 16", n)
	}
}

// TestSnapshotsOfOthersStay: a switch that floods snapshots loses its own.
func TestSnapshotsOfOthersStay(t *testing.T) {
	cfg := Config{Detections: 1 << 16, Memory: model.MiB, Known: func(sw model.NodeID) bool { return sw < 10 }}
	c, _ := NewCollector(cfg)
	honest := poll.Event{Host: 1, Number: 1}
	c.Expect(honest, true)
	for sw := range model.NodeID(3) {
		for _, b := range report(sw, honest, 100, 20) {
			if _, err := c.AddChunk(0, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range uint32(5000) {
		for _, b := range report(9, poll.Event{Host: 2, Number: i}, model.Time(1000+i), 20) {
			_, _ = c.AddChunk(0, b)
		}
		if c.Held() > cfg.Memory {
			t.Fatalf("%v held; want at most %v", c.Held(), cfg.Memory)
		}
	}
	if e := c.Evidence(honest); len(e.Reports) != 3 || !e.Complete() {
		t.Errorf("%d reports, complete %v after a flood of another switch; want all 3", len(e.Reports), e.Complete())
	}
	if _, err := c.AddChunk(0, reference(5000, honest, 1)); !errors.Is(err, ErrUnknown) {
		t.Errorf("AddChunk of an unknown switch = %v; want %v", err, ErrUnknown)
	}
}
