package live

import (
	"flag"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
)

var soakRounds = flag.Int("soak", 30, "rounds of the programme that TestMemoryStaysFlat plays")

// TestMemoryStaysFlat plays the programme round after round into a store, with
// small bounds: what is over is forgotten, by the simulator, the watches, the
// director, memory and file. It is a million packet-hops, half a million
// records and 210 faults. In the first third of it everything that is bounded
// fills up; what is live after a round of the last third may then exceed that of
// the second by a megabyte, the pools being as large as the worst moment so far.
// A simulator that forgets no flows leaks four.
func TestMemoryStaysFlat(t *testing.T) {
	race.LeaveToPlainRun(t)
	cfg := small(1)
	cfg.Rate, cfg.Load, cfg.TraceMemory = model.Gbps, cfg.Load/4, 256*model.KiB // packets are not what memory is for
	bounds := embedded.DefaultConfig()
	bounds.Memory, bounds.MaxSize, bounds.CacheSize = 64*model.MiB, 8*model.MiB, 2*model.MiB
	bounds.NumberedFlows = 1000
	s, err := embedded.Open(filepath.Join(t.TempDir(), "weft.duckdb"), bounds)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var d *Director
	var kept record.Batch
	l, err := NewDemo(cfg, control.Output{Incident: func(in *incident.Incident) { d.ObserveIncident(in) }, Records: func(b *record.Batch) {
		kept.Flows, kept.Losses, kept.Ports = append(kept.Flows, b.Flows...), append(kept.Losses, b.Losses...), append(kept.Ports, b.Ports...)
		kept.Traces, kept.Counters = append(kept.Traces, b.Traces...), append(kept.Counters, b.Counters...)
		kept.Diagnoses, kept.Incidents = append(kept.Diagnoses, b.Diagnoses...), append(kept.Incidents, b.Incidents...)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d = NewDirector(l)
	d.maxFaults = len(FaultKinds())

	round := func() (heap uint64) {
		records := 0
		for _, k := range FaultKinds() {
			if _, err := d.Inject(k.Name, Anywhere, 20*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			pass(t, l, 30*time.Millisecond)
			records += kept.Len()
			if err := s.Append(t.Context(), &kept); err != nil {
				t.Fatal(err)
			}
			kept = record.Batch{}
		}
		up, err := s.Maintain(t.Context(), time.Unix(0, int64(l.Now())))
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.GC() // what finalizers and pools held
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%d packet-hops, %d records: heap %.1f MiB in %d objects, %d goroutines; store %v, DuckDB %v", l.net.Counts.Hops, records, float64(m.HeapAlloc)/(1<<20), m.HeapObjects, runtime.NumGoroutine(), up.After, up.Memory)
		if up.After > bounds.MaxSize*5/4 || up.Memory > bounds.Memory {
			t.Errorf("store takes %v on disk and %v in memory; want at most %v and %v", up.After, up.Memory, bounds.MaxSize, bounds.Memory)
		}
		return m.HeapAlloc
	}
	var heaps []uint64
	var running int
	for n := range *soakRounds {
		heaps = append(heaps, round())
		if n == 0 {
			running = runtime.NumGoroutine()
		}
		// Those that are about to end are given the time to do so.
		for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > running; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d goroutines after round %d, %d after the first; want no more", runtime.NumGoroutine(), n+1, running)
			}
		}
	}
	third := len(heaps) / 3
	early, late := slices.Min(heaps[third:2*third]), slices.Min(heaps[2*third:])
	if late > early+leak {
		t.Errorf("%d bytes are live after early rounds, %d after late ones; want at most %d more", early, late, leak)
	}
}

// leak is how much more may be live in late rounds.
const leak = 1 << 20
