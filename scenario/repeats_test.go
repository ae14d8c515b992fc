package scenario

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// repeating is a job of 60 iterations on eight hosts; the values are its traffic item, and
// what follows it.
const repeating = `
seed: %d
duration: 1s
stop-when-finished: true
topology: {generate: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 4}}
traffic:
  - {name: job, hosts: [h0..h7], iterations: 60, %s}
%s`

// runRepeating runs a scenario, with iterations that repeat skipped or not.
func runRepeating(t *testing.T, text string, skip float64) *Result {
	t.Helper()
	r, err := Run(context.Background(), mustParse(t, text), Options{SkipRepeats: skip}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The end of a job that is said after some of its iterations is compared with that of the
// whole run.
func TestSkippedIterationsEndWhenSaid(t *testing.T) {
	for name, item := range map[string]string{
		"ring":       "kind: all-reduce, bytes: 400KB, compute: 20us",
		"channels":   "kind: collective, op: all-gather, channels: 2, bytes: 400KB, compute: 20us",
		"tree":       "kind: collective, op: all-reduce, algorithm: tree, bytes: 400KB, compute: 20us",
		"all-to-all": "kind: all-to-all, bytes: 400KB, compute: 20us",
		"pipeline":   "kind: pipeline, bytes: 50KB, microbatches: 4, forward: 20us",
	} {
		t.Run(name, func(t *testing.T) {
			spread := 0.01
			if name == "channels" {
				spread = 0.05 // which share links, and never settle
			}
			for seed := range 2 {
				// A fault and traffic that end early change nothing in the end.
				text := fmt.Sprintf(repeating, seed+1, item, "  - {kind: incast, receivers: [h3], fanin: 4, bytes: 20KB, start: 10us}\nfaults: [{kind: slow-nic, host: h5, rate: 20Gb/s, for: 300us}]\n")
				whole, part := runRepeating(t, text, 0), runRepeating(t, text, spread)
				s := part.Skipped
				if s == nil {
					t.Fatalf("seed %d: nothing was skipped: %v", seed+1, part.Run.Notes)
				}
				end := lastOf(whole, "job")
				t.Logf("seed %d: %v; it ends at %v", seed+1, s, end)
				if s.Simulated >= 60 || s.Total != 60 || part.Run.End >= whole.Run.End {
					t.Errorf("seed %d: %+v of a run to %v, want a part of 60 iterations and of %v", seed+1, s, part.Run.End, whole.Run.End)
				}
				if end < s.Earliest || end > s.Latest || s.End < s.Earliest || s.End > s.Latest {
					t.Errorf("seed %d: said %v, from %v to %v; the whole run ends at %v", seed+1, s.End, s.Earliest, s.Latest, end)
				}
				for _, f := range part.Run.Flows {
					if !f.Finished {
						t.Fatalf("seed %d: flow %+v of a skipped iteration is listed as unfinished", seed+1, f)
					}
				}
			}
		})
	}
}

// What still changes, or shares the fabric, is simulated to its end.
func TestNothingIsSkippedWhileSomethingChanges(t *testing.T) {
	const ring = "kind: all-reduce, bytes: 400KB, compute: 20us"
	for _, c := range []struct{ name, item, more, why string }{
		{"a fault to come", ring, "faults: [{kind: slow-nic, host: h5, rate: 20Gb/s, at: 900ms, for: 1ms}]\n", "the scenario changes the fabric until +901ms"},
		{"a link that flaps", ring, "faults: [{kind: link-flap, port: leaf0>spine0, down: 10us, up: 20ms}]\n", "the scenario changes the fabric"},
		{"other traffic", ring, "  - {kind: persistent, name: other, pairs: [h0>h4], rate: 1Gb/s}\n", "1 of the 1 flows beside job had not ended"},
		{"few iterations", ring + ", iterations: 8", "", "fewer than 17 iterations ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf(repeating, 1, c.item, c.more)
			if strings.Contains(c.item, "iterations") {
				text = strings.Replace(text, "iterations: 60, ", "", 1)
			}
			r := runRepeating(t, text, 0.01)
			if notes := strings.Join(r.Run.Notes, "\n"); r.Skipped != nil || !strings.Contains(notes, "no iterations of job were skipped: ") || !strings.Contains(notes, c.why) {
				t.Errorf("skipped %+v with the notes %q, want nothing because %s", r.Skipped, notes, c.why)
			}
		})
	}
}

func TestRepeatsNeedOneJob(t *testing.T) {
	for _, c := range []struct{ more, want string }{
		{"  - {kind: all-reduce, name: second, iterations: 20}\n", "traffic second: a second job beside job, want one to skip repeated iterations"},
		{"", "no job whose iterations repeat, want a collective"},
	} {
		text := fmt.Sprintf(repeating, 1, "kind: all-reduce, bytes: 400KB", c.more)
		if c.more == "" {
			text = strings.Replace(text, "{name: job, hosts: [h0..h7], iterations: 60, kind: all-reduce, bytes: 400KB}", "{kind: incast, receivers: [h3], fanin: 4}", 1)
		}
		if _, err := Run(context.Background(), mustParse(t, text), Options{SkipRepeats: 0.01}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// lastOf is when the last flow or computation of a traffic item ended.
func lastOf(r *Result, group string) (end model.Time) {
	for i := range r.Run.Flows {
		if f := &r.Run.Flows[i]; f.Group == group {
			end = max(end, f.Finish)
		}
	}
	return end
}
