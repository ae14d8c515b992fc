package live

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario"
)

func startExample(t *testing.T, name string, o StartOptions) *Running {
	t.Helper()
	s, err := scenario.Read(filepath.Join("..", "..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, s, o)
}

func start(t *testing.T, s *scenario.Scenario, o StartOptions) *Running {
	t.Helper()
	r, err := Start(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestScenarioUnderTheAPI runs scenarios to their end and asks the API what a
// controller found.
func TestScenarioUnderTheAPI(t *testing.T) {
	for file, causes := range map[string][]string{
		"flow-faults.yaml":      {"loop", "blackhole"},
		"traced-blackhole.yaml": {"loss"},
		"incast.yaml":           {"incast"},
	} {
		t.Run(file, func(t *testing.T) {
			r := startExample(t, file, StartOptions{})
			if err := r.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			page, err := r.Client().Incidents(t.Context(), api.IncidentsQuery{})
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, in := range page.Items {
				t.Logf("%s %s at %s: %s", in.ID, in.Cause, in.Location, in.Summary)
				found[in.Cause] = true
			}
			for _, cause := range causes {
				if !found[cause] {
					t.Errorf("no incident of cause %s", cause)
				}
			}
		})
	}
}

// TestDeepQueueIsNoLoss has packets that wait for 20 ms in a buffer of 16 MB at 1 Gb/s: they
// are late, and not lost.
func TestDeepQueueIsNoLoss(t *testing.T) {
	r := startExample(t, "incidents/contention/scenario.yaml", StartOptions{})
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := r.Client().Incidents(t.Context(), api.IncidentsQuery{})
	if err != nil {
		t.Fatal(err)
	}
	contention := false
	for _, in := range page.Items {
		contention = contention || in.Cause == "contention"
		if in.Cause == "loss" {
			t.Errorf("%s at %s: %s", in.Cause, in.Location, in.Summary)
		}
	}
	if !contention {
		t.Error("no incident of contention")
	}
}

// TestProbeWhileAScenarioStops places a mark at the start and probes in the middle.
func TestProbeWhileAScenarioStops(t *testing.T) {
	r := startExample(t, "trace.yaml", StartOptions{KeepAllTraces: true})
	ctx, c := t.Context(), r.Client()
	if _, err := c.SetMark(ctx, api.MarkRequest{Host: "h0", DurationMs: 10}); err != nil {
		t.Fatal(err)
	}
	if err := r.RunUntil(ctx, r.Duration()/2); err != nil {
		t.Fatal(err)
	}
	clock, err := c.Clock(ctx)
	if err != nil || clock.Now.Sub(r.Start()) != r.Duration()/2 {
		t.Fatalf("clock %+v, %v; want half of %v", clock, err, r.Duration())
	}
	f := r.sim.fabric
	leaf := f.Node(f.Hosts()[0]).Ports[0].Peer.Node
	up := f.Node(leaf).Ports[len(f.Node(leaf).Ports)-1]
	p, err := c.StartProbe(ctx, api.ProbeRequest{
		Kind: "link", Link: &api.PortRef{Node: f.Node(leaf).Name, Port: up.ID}, Count: 10, IntervalUs: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	for at := r.Duration() / 2; p.State != "done" && at < time.Second; {
		at += time.Millisecond
		if err := r.RunUntil(ctx, at); err != nil {
			t.Fatal(err)
		}
		if p, err = c.Probe(ctx, p.ID); err != nil {
			t.Fatal(err)
		}
	}
	if p.State != "done" || p.RTT == nil {
		t.Errorf("probe %+v; want it done, with a round trip", p)
	}
	if err := r.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	traces, err := c.Traces(ctx, api.TracesQuery{Range: api.Range{From: r.Start()}})
	if err != nil || len(traces.Items) == 0 {
		t.Errorf("%d traces, %v; want some", len(traces.Items), err)
	}
	if err := r.Wait(ctx); err != nil {
		t.Error("Wait once more:", err)
	}
}

// TestCancelledRunReturns: a run whose context has ended returns, and so does the
// next one.
func TestCancelledRunReturns(t *testing.T) {
	r := startExample(t, "incast.yaml", StartOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := r.RunUntil(ctx, r.Duration()); err == nil {
			t.Error("a cancelled run returned no error")
		}
	}
}
