package scenario

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
)

// eight is a rack of eight hosts with an idle fabric and no congestion control, so
// that only the collective's own structure takes time.
const eight = `
duration: 200ms
stop-when-finished: on
topology: {generate: {kind: leaf-spine, leaves: 1, spines: 1, hosts: 8}}
fabric: {congestion-control: none}
traffic:
  - {kind: %s}
`

// TestCollectivesTakeTheIdealTime: on an idle fabric each collective takes what the
// textbook says for its bytes at the rate of a link with headers, and at most a round
// trip for each of its steps more.
func TestCollectivesTakeTheIdealTime(t *testing.T) {
	race.LeaveToPlainRun(t)
	const (
		n, size   = 8, 8e6
		rate      = 12.5e9 * 1024 / (1024 + 82) // payload bytes per second: RoCEv2's headers and preamble are less
		roundTrip = 10e-6
	)
	for item, tc := range map[string]struct {
		seconds, steps float64
	}{
		"collective, op: all-reduce, algorithm: ring, channels: 1, bytes: 8MB":       {2 * (n - 1) * size / n / rate, 2 * (n - 1)},
		"collective, op: all-reduce, algorithm: ring, bytes: 8MB":                    {2 * (n - 1) * size / n / rate, 2 * (n - 1)},
		"collective, op: all-gather, bytes: 8MB":                                     {(n - 1) * size / n / rate, n - 1},
		"collective, op: reduce-scatter, bytes: 8MB":                                 {(n - 1) * size / n / rate, n - 1},
		"collective, op: all-to-all, bytes: 8MB":                                     {(n - 1) * size / n / rate, n - 1},
		"collective, op: broadcast, bytes: 8MB, root: h3, channels: 2, chunk: 100KB": {(size + 2*100e3*(n-2)) / rate, n + 40},
		// Inner servers of a double tree receive twice the buffer and send it twice.
		"collective, op: all-reduce, algorithm: tree, channels: 2, bytes: 8MB, chunk: 100KB": {2*size/rate + 8*2*100e3/rate, 40 + 8},
	} {
		t.Run(item, func(t *testing.T) {
			r := runScenario(t, mustParse(t, fmt.Sprintf(eight, item)))
			if len(r.Jobs) != 1 || r.Jobs[0].Finished != 1 || len(r.Summary.Drops) > 0 {
				t.Fatalf("jobs %+v, drops %+v; want one that finished, and none", r.Jobs, r.Summary.Drops)
			}
			got := r.Jobs[0].Max.Seconds()
			least := tc.seconds * 0.98
			if strings.Contains(item, "broadcast") || strings.Contains(item, "tree") {
				least = size / rate // pipelines overlap their ends
			}
			if most := tc.seconds*1.02 + tc.steps*roundTrip; got < least || got > most {
				t.Errorf("takes %.1f µs; want from %.1f to %.1f", got*1e6, least*1e6, most*1e6)
			}
		})
	}
}

// TestPipelineTakesTheIdealTime: (M+S-1)(f+b) and the transfers on the way.
func TestPipelineTakesTheIdealTime(t *testing.T) {
	r := runScenario(t, mustParse(t, fmt.Sprintf(eight, "pipeline, bytes: 100KB, microbatches: 6, forward: 200us, hosts: [h0..h3]")))
	if len(r.Jobs) != 1 || r.Jobs[0].Finished != 1 {
		t.Fatalf("jobs %+v; want one that finished", r.Jobs)
	}
	ideal := (6 + 4 - 1) * 3 * 200 * time.Microsecond
	if got := r.Jobs[0].Max; got < ideal || got > ideal+8*25*time.Microsecond {
		t.Errorf("takes %v; want %v and some transfers of 10 µs", got, ideal)
	}
	if len(r.CriticalPaths) != 1 || r.CriticalPaths[0].Computing < ideal {
		t.Errorf("critical paths %+v; want %v of computing", r.CriticalPaths, ideal)
	}
}

// TestStepsNameWhoDelayedThem: a rank that computes slower, one with a slow NIC, and a
// slow or longer link are on the critical path, the latest first, in the step that
// they delayed.
func TestStepsNameWhoDelayedThem(t *testing.T) {
	race.LeaveToPlainRun(t)
	const job = "collective, op: all-reduce, algorithm: ring, channels: 1, bytes: 4MB, iterations: 3, compute: 300us"
	before := runScenario(t, mustParse(t, fmt.Sprintf(eight, job))).CriticalPaths[0]
	for fault, tc := range map[string]struct {
		by   string
		late time.Duration // at least
	}{
		"kind: straggler, host: h5, factor: 2":               {"h5", 300 * time.Microsecond},
		"kind: slow-nic, host: h5, rate: 25Gb/s":             {"h5", time.Millisecond},
		"kind: slow-link, port: h5, rate: 25Gb/s":            {"h5", time.Millisecond},
		"kind: slow-link, port: h2, delay: 100us, at: 500us": {"h2", time.Millisecond},
	} {
		t.Run(fault, func(t *testing.T) {
			r := runScenario(t, mustParse(t, fmt.Sprintf(eight, job)+"faults:\n  - {"+fault+"}\n"))
			p := r.CriticalPaths[0]
			if len(p.Delayed) == 0 || !strings.Contains(p.Delayed[0].By, tc.by) {
				t.Fatalf("delayed by %+v; want %s first", p.Delayed, tc.by)
			}
			var late time.Duration
			for _, d := range p.Delayed {
				if strings.Contains(d.By, tc.by) {
					late += d.Late
				}
			}
			grew := p.Length - before.Length
			if late < tc.late || math.Abs(float64(late-grew)) > 0.25*float64(grew) {
				t.Errorf("%s late by %v, and the job by %v more; want at least %v, and a quarter apart at most", tc.by, late, grew, tc.late)
			}
			if len(r.Injected) != 1 || len(r.Faults) > 0 {
				t.Errorf("injected %q, faults %q; want one, and none", r.Injected, r.Faults)
			}
		})
	}
}
