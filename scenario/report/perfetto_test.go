package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestPerfettoTimeline: the file is JSON, slices of a track do not overlap, and
// every flow, computation and pause is there once.
func TestPerfettoTimeline(t *testing.T) {
	r := invent(shape{flows: 200, ports: 6, samples: 50, bursts: 3, stuck: 4})
	r.Computations = []Computation{{Host: "h0", Core: 2, Start: 1000, Finish: 3000, Planned: 1500}}
	var b bytes.Buffer
	if err := r.WritePerfetto(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		TraceEvents []struct {
			Name     string
			Ph       string
			Ts, Dur  float64
			Pid, Tid int
			Args     map[string]any
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	type track struct{ pid, tid int }
	end, named := make(map[track]float64), make(map[track]string)
	flows, computations, pauses, samples := 0, 0, 0, 0
	for _, e := range got.TraceEvents {
		at := track{e.Pid, e.Tid}
		switch e.Ph {
		case "M":
			if e.Name == "thread_name" {
				named[at] = e.Args["name"].(string)
			}
		case "C":
			samples++
		case "X":
			if e.Ts < end[at] {
				t.Errorf("%s on track %v starts at %v; want not before %v", e.Name, at, e.Ts, end[at])
			}
			end[at] = e.Ts + e.Dur
			if named[at] == "" {
				t.Errorf("track %v of %s has no name", at, e.Name)
			}
			switch {
			case strings.HasPrefix(e.Name, "to "):
				flows++
			case e.Name == "compute":
				computations++
				if named[at] != "core 2" || e.Ts != 1 || e.Dur != 2 {
					t.Errorf("computation on %q from %v for %v; want core 2 from 1 for 2", named[at], e.Ts, e.Dur)
				}
			case e.Name == "paused":
				pauses++
			}
		}
	}
	want := 0
	for _, q := range r.pausedQueues() {
		want += len(q.spans)
	}
	if flows != 200 || computations != 1 || pauses != want || samples == 0 {
		t.Errorf("%d flows, %d computations, %d pauses, %d samples; want 200, 1, %d and some", flows, computations, pauses, samples, want)
	}
}

func TestQueueLengths(t *testing.T) {
	r := smallRun()
	r.Ports[1].Samples = []Sample{{Queue: 999}, {Queue: 2000}, {Queue: 2999}}
	var b strings.Builder
	if err := r.WriteQueueLengths(&b); err != nil {
		t.Fatal(err)
	}
	if want := "time: 100000\n4 1 2\n4 4 1 0 2\n"; b.String() != want {
		t.Errorf("qlen.txt is %q; want %q", b.String(), want)
	}
}
