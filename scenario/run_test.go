package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/topo/file"
)

func runScenario(t testing.TB, s *Scenario) *Result {
	t.Helper()
	r, err := Run(context.Background(), s, Options{}, nil)
	if err != nil {
		t.Fatalf("Run = %v; want no error", err)
	}
	return r
}

// TestExamples: every example holds what it expects, and says what it is about.
func TestExamples(t *testing.T) {
	race.LeaveToPlainRun(t)
	paths, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d examples, %v; want at least 8", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if s.About == "" || len(s.Expect) == 0 || s.Name+".yaml" != filepath.Base(path) {
				t.Errorf("name %q, about %q, %d expectations; want the file's name, a text and some", s.Name, s.About, len(s.Expect))
			}
			r := runScenario(t, s)
			if r.Verdict != Pass {
				t.Errorf("verdict %s; want PASS:\n%+v\n%s", r.Verdict, r.Expected, strings.Join(r.Run.Notes, "\n"))
			}
			if err := r.Truth.Conserved(); err != nil && !strings.Contains(err.Error(), "not recorded") {
				t.Error(err)
			}
		})
	}
}

const busy = `duration: 1ms
topology:
  generate: {kind: ring, switches: 3, hosts: 2}
fabric: {buffer: 1MB}
traffic:
  - {kind: incast, receivers: h0, fanin: 5, bytes: 100KB, start: 10us}
  - {kind: poisson, name: background, load: 20%, sizes: storage}
`

// The same seed gives the same bytes, another seed others, and a Scenario can
// be run again.
func TestReplay(t *testing.T) {
	s := mustParse(t, busy)
	write := func(r *Result) (all []byte) {
		dir := t.TempDir()
		if err := r.Run.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, data...)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return append(all, text...)
	}
	first := string(write(runScenario(t, s)))
	if again := string(write(runScenario(t, s))); again != first {
		t.Errorf("a second run writes %d bytes that differ from the first's %d; want the same", len(again), len(first))
	}
	s.Seed = 2
	if other := string(write(runScenario(t, s))); other == first {
		t.Error("seed 2 writes what seed 1 does; want something else")
	}
}

func TestProgressAndCancel(t *testing.T) {
	s := mustParse(t, busy)
	var last Progress
	if _, err := Run(context.Background(), s, Options{}, func(p Progress) { last = p }); err != nil {
		t.Fatal(err)
	}
	if last.Now != time.Millisecond || last.End != time.Millisecond || last.Finished == 0 || last.Flows < last.Finished || last.Hops == 0 || last.Left != 0 {
		t.Errorf("last progress %+v; want the end, with flows and hops", last)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, s, Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Run of a cancelled context = %v; want context.Canceled", err)
	}
}

func TestVerdicts(t *testing.T) {
	const stuck = `duration: 3ms
topology:
  generate: {kind: ring, switches: 3, hosts: 1}
  routes:
    - {at: s0, to: h2, via: [s1]}
    - {at: s1, to: h0, via: [s2]}
    - {at: s2, to: h1, via: [s0]}
fabric: {buffer: 500KB, congestion-control: none, rto: 0}
traffic:
  - {kind: persistent, pairs: [h0>h2, h1>h0, h2>h1], rate: 100Gb/s, start: 1us}
`
	for name, tc := range map[string]struct {
		text string
		want Verdict
	}{
		"nothing expected, nothing wrong": {busy, Pass},
		"met":                             {busy + "expect: {finished: at least 50%, groups: {background: {flows: above 3}}}\n", Pass},
		"missed":                          {busy + "expect: {drops: some}\n", Fail},
		"unknown":                         {"duration: 1ms\ntopology: {generate: {kind: ring}}\nexpect: {slowdown-p99: below 9}\n", Fail},
		"deadlock":                        {stuck, UnexpectedFault},
		"deadlock expected":               {stuck + "expect: {deadlock: persistent}\n", Pass},
		"no deadlock expected":            {stuck + "expect: {deadlock: none}\n", Fail},
		"one thing expected of two":       {stuck + "expect: {lossless-drops: none}\n", UnexpectedFault},
		"lossless class loses":            {strings.Replace(busy, "{buffer: 1MB}", "{buffer: 1MB, headroom: 1KB}", 1), UnexpectedFault},
	} {
		s := mustParse(t, tc.text)
		if r := runScenario(t, s); r.Verdict != tc.want {
			t.Errorf("%s: verdict %s; want %s: %+v, deadlocks %+v, %d lossless drops", name, r.Verdict, tc.want, r.Expected, r.Deadlocks, r.LosslessDrops)
		}
	}
}

// What cannot be found wrong before everything is put together is still placed.
func TestRunErrors(t *testing.T) {
	for text, want := range map[string]string{
		ring + "traffic:\n  - {kind: incast, fanin: 6}\n":                                       "test.yaml:7: traffic incast: fan-in 6, want from 1 to 5",
		ring + "traffic:\n  - {kind: incast}\n  - {kind: shrew, receiver: h0, senders: [h0]}\n": "test.yaml:7: traffic incast: fan-in 8, want from 1 to 5",
		ring + "traffic:\n  - {kind: poisson, start: 2ms}\n":                                    "test.yaml:7: traffic poisson: duration -1ms, want from 1ns",
		ring + "fabric:\n  buffer: 1KB\n":                                                       "test.yaml:7: fabric: s0: buffer 1KB, want more than",
		"duration: 1ms\ntopology: {generate: {kind: ring, hosts: 0}}\n":                         "test.yaml:2: topology: 0 hosts and 4 switches, want at least two and one",
	} {
		_, err := Run(context.Background(), mustParse(t, text), Options{}, nil)
		var e *file.Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Run = %v\nwant %q… of\n%s", err, want, text)
		}
	}
	s := mustParse(t, busy)
	s.Duration = 0
	if _, err := Run(context.Background(), s, Options{}, nil); err == nil {
		t.Error("Run without a duration = nil; want an error")
	}
}

// Traffic without an end goes on to the end of the run, also when that is
// moved.
func TestToTheEnd(t *testing.T) {
	s := mustParse(t, ring+"traffic:\n  - {kind: persistent, pairs: h0>h1, start: 10us}\n")
	for _, d := range []time.Duration{time.Millisecond, 2 * time.Millisecond} {
		s.Duration = d
		r := runScenario(t, s)
		// 1 Gb/s of frames, of which 1024 in 1082 bytes are payload.
		want := 1e9 / 8 * (d - 10*time.Microsecond).Seconds() * 1024 / 1082
		if f := r.Run.Flows[0]; float64(f.Delivered) < 0.97*want || float64(f.Delivered) > 1.01*want {
			t.Errorf("delivered %v in %v; want about %.0f", f.Delivered, d, want)
		}
	}
}

func TestStopWhenFinished(t *testing.T) {
	s := mustParse(t, ring+"stop-when-finished: on\ntraffic:\n  - {kind: flows, list: [{from: h0, to: h1, bytes: 1KB}]}\n")
	if r := runScenario(t, s); r.Run.End < 3000 || r.Run.End > 10_000 {
		t.Errorf("the run ended at %v; want soon after its one flow", r.Run.End)
	}
}

// Flows are listed under the name of the item they come from, and jobs are
// measured from their first start to their last finish.
func TestGroupsAndJobs(t *testing.T) {
	s := mustParse(t, ring+`traffic:
  - {kind: flows, name: a, list: [{from: h0, to: h1, bytes: 1KB, start: 500us}]}
  - {kind: incast, name: b, receivers: h0, fanin: 2, bytes: 10KB, rounds: 3, period: 100us}
  - {kind: flows, name: c, list: [{from: h2, to: h3, bytes: 1KB}, {from: h3, to: h2, bytes: 1KB, after: 1}, {from: h3, to: h2, bytes: 1KB, start: 2ms}]}
`)
	r := runScenario(t, s)
	got := map[string]int{}
	var longest time.Duration
	for _, f := range r.Run.Flows {
		got[f.Group]++
		if f.Group == "b" {
			longest = max(longest, f.FCT())
		}
	}
	if got["a"] != 1 || got["b"] != 6 || got["c"] != 2 {
		t.Errorf("flows by group %v; want a: 1, b: 6, c: 2, without the one after the end", got)
	}
	if !strings.Contains(strings.Join(r.Run.Notes, "\n"), "1 of 10 flows start after the end") {
		t.Errorf("notes %q; want one on the flow that starts too late", r.Run.Notes)
	}
	if len(r.Jobs) != 1 || r.Jobs[0].Name != "b" || r.Jobs[0].Total != 3 || r.Jobs[0].Finished != 3 || r.Jobs[0].Max != longest {
		t.Errorf("jobs %+v; want three of b, the longest %v", r.Jobs, longest)
	}
	if len(r.Injected) != 1 || r.Injected[0] != "6 flows of b from +0s" {
		t.Errorf("injected %q; want the incast", r.Injected)
	}
}

// An offset clock changes what a device shows and nothing that happens.
func TestClocksChangeNothing(t *testing.T) {
	plain := runScenario(t, mustParse(t, busy))
	skewed := runScenario(t, mustParse(t, busy+"clocks:\n  - {nodes: [s0..s2], offset: -3us, drift: 50ppm}\n"))
	a, _ := json.Marshal(plain.Summary)
	b, _ := json.Marshal(skewed.Summary)
	if string(a) != string(b) {
		t.Errorf("with other clocks the summary is\n%s; want\n%s", b, a)
	}
}
