package live

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
)

// small is a fabric that is quick to simulate. What is found does not depend on the
// rate of its links.
func small(seed uint64) Config {
	cfg := DefaultConfig()
	cfg.Seed, cfg.Rate = seed, 10*model.Gbps
	return cfg
}

// slow is a fabric that runs in real time.
func slow(seed uint64) Config {
	cfg := small(seed)
	cfg.Rate = model.Gbps
	return cfg
}

// watched is a simulation and its director.
func watched(t *testing.T, cfg Config) (*Simulation, *Director) {
	t.Helper()
	var d *Director
	l, err := NewDemo(cfg, control.Output{Incident: func(in *incident.Incident) { d.ObserveIncident(in) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	d = NewDirector(l)
	return l, d
}

func pass(t *testing.T, l *Simulation, d time.Duration) {
	t.Helper()
	for end := l.Now().Add(d); l.Now() < end; {
		if err := l.Advance(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestProgrammeIsFound injects every fault once: each fault is found with the right
// cause, and nothing else is.
func TestProgrammeIsFound(t *testing.T) {
	race.LeaveToPlainRun(t)
	runs := []Config{small(1), slow(2)}
	if testing.Short() {
		runs = runs[:1]
	}
	for _, cfg := range runs {
		t.Run(fmt.Sprintf("%v seed %d", cfg.Rate, cfg.Seed), func(t *testing.T) {
			l, d := watched(t, cfg)
			s, err := d.RunProgramme(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range s.Describe(l, d).Faults {
				t.Logf("%-12s %-8s found %v after %v ms as %s by %s", f.Kind, f.Where, f.Found, f.FoundAfterMs, f.Cause, f.Sources)
				if !f.Found {
					t.Errorf("%s was missed: %s", f.Kind, f.What)
				}
			}
			for _, in := range s.FalseAlarms {
				t.Errorf("incident %d is a false alarm: %v at %s: %s", in.ID, in.Cause, l.fabric.PortRef(in.Place), in.Text)
			}
		})
	}
}

// TestIncastAtFullRate has what slower links do not: snapshots are old for the packets
// that they are to explain, and pauses outnumber what a switch remembers one by one.
func TestIncastAtFullRate(t *testing.T) {
	race.LeaveToPlainRun(t)
	cfg := DefaultConfig()
	cfg.Seed = 2
	l, d := watched(t, cfg)
	pass(t, l, faultGap)
	f, err := d.Inject("incast", Anywhere, faultDuration)
	if err != nil {
		t.Fatal(err)
	}
	pass(t, l, faultDuration+reportDelay)
	s := d.Score()
	if !f.Found {
		t.Errorf("missed: %s", f.What)
	}
	for _, in := range s.FalseAlarms {
		t.Errorf("incident %d is a false alarm: %v at %s: %s", in.ID, in.Cause, l.fabric.PortRef(in.Place), in.Text)
	}
}

// TestBlackholeIsJoined is three sources that agree about one place within a
// tenth of a second: counters, traces, and probes that the controller sends by
// itself.
func TestBlackholeIsJoined(t *testing.T) {
	l, d := watched(t, small(3))
	pass(t, l, 50*time.Millisecond)
	f, err := d.Inject("blackhole", Anywhere, faultDuration)
	if err != nil {
		t.Fatal(err)
	}
	pass(t, l, 60*time.Millisecond)
	if !f.Found {
		t.Fatalf("not found: %s", f.What)
	}
	in := d.incidents[f.Incident]
	for _, want := range []anomaly.Source{anomaly.Flowsets, anomaly.Traces, anomaly.Probes} {
		agrees := false
		for _, s := range in.sources {
			agrees = agrees || s == want
		}
		if !agrees {
			t.Errorf("%v have no evidence within 60 ms, only %v", want, in.sources)
		}
	}
}

// TestQuietFabricHasNoIncidents runs traffic without faults.
func TestQuietFabricHasNoIncidents(t *testing.T) {
	for _, cfg := range []Config{small(5), slow(4)} {
		l, d := watched(t, cfg)
		pass(t, l, race.Less(200*time.Millisecond, 30*time.Millisecond))
		for _, in := range d.Score().FalseAlarms {
			t.Errorf("%v: incident %d: %v at %s: %s", cfg.Rate, in.ID, in.Cause, l.fabric.PortRef(in.Place), in.Text)
		}
		if n := l.net.Flows(); n > 20_000 {
			t.Errorf("%v: %d places for flows, want those that are over forgotten", cfg.Rate, n)
		}
	}
}

// TestSeedsReplay runs the same fault twice.
func TestSeedsReplay(t *testing.T) {
	race.LeaveToPlainRun(t)
	var first string
	for range 2 {
		l, d := watched(t, small(7))
		pass(t, l, 20*time.Millisecond)
		if _, err := d.Inject("loop", Anywhere, faultDuration); err != nil {
			t.Fatal(err)
		}
		pass(t, l, 40*time.Millisecond)
		b, err := json.Marshal(d.Score().Describe(l, d))
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(b)
		}
		if string(b) != first {
			t.Errorf("the same seed gave\n%s\nand\n%s", first, b)
		}
	}
}

// TestFaultsWantTheirPlaces asks for what cannot be.
func TestFaultsWantTheirPlaces(t *testing.T) {
	l, d := watched(t, small(1))
	host, sw := l.fabric.Hosts()[0], l.fabric.Switches()[0]
	for name, try := range map[string]func() error{
		"unknown kind":       func() error { _, err := d.Inject("flood", Anywhere, faultDuration); return err },
		"storm at a switch":  func() error { _, err := d.Inject("storm", At(sw, 0), faultDuration); return err },
		"black hole at host": func() error { _, err := d.Inject("blackhole", At(host, 0), faultDuration); return err },
		"deadlock at a ToR":  func() error { _, err := d.Inject("deadlock", At(sw, 0), faultDuration); return err },
	} {
		if try() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// TestFaultFollowsAMergedIncident: the first evidence of a fault made an incident that
// turns out to be part of another. The fault is then shown with the other, and is found
// only if that one has its cause.
func TestFaultFollowsAMergedIncident(t *testing.T) {
	for cause, verdict := range map[anomaly.Cause]string{anomaly.Incast: "right", anomaly.Storm: "wrong"} {
		_, d := watched(t, small(1))
		f, err := d.Inject("incast", Anywhere, faultDuration)
		if err != nil {
			t.Fatal(err)
		}
		at := f.At.Add(time.Millisecond)
		part := incident.Incident{ID: 4, Cause: anomaly.Contention, Nodes: f.Nodes, Location: model.Port{Node: f.Nodes[0]}, Begin: at, Last: at}
		d.ObserveIncident(&part)
		whole := incident.Incident{ID: 5, Cause: cause, Nodes: f.Nodes, Location: model.Port{Node: f.Nodes[0]}, Begin: at, Last: at}
		part.Closed, part.MergedInto = true, whole.ID
		d.ObserveIncident(&part)
		d.ObserveIncident(&whole)
		shown := (&System{sim: d.sim, director: d}).faultView(f)
		if shown.Incident != "i5" || shown.Verdict != verdict {
			t.Errorf("merged into one with cause %v: shown with incident %s as %s, want i5 as %s", cause, shown.Incident, shown.Verdict, verdict)
		}
		if got := d.Score().Missed == 0; got != (verdict == "right") {
			t.Errorf("merged into one with cause %v: found %v", cause, got)
		}
	}
}
