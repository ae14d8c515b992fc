package live

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/wire/dta"
)

func recordingScenario(t *testing.T) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Read(filepath.Join("..", "..", "examples", "recording", "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestReportersFollowTheServicesPlan: every list of the plan of a service gets reports, every
// report goes to a list of the plan or has a key, and times are those of the start.
func TestReportersFollowTheServicesPlan(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lists, keyed := map[dta.ListID]int{}, map[dta.Primitive]int{}
	r, err := NewScenarioReporters(recordingScenario(t), start, func(at model.Time, _ model.NodeID, datagram []byte) error {
		if at < model.TimeOf(start) || at > model.TimeOf(start.Add(time.Second)) {
			t.Fatalf("a datagram at %v; want one within a second after %v", at, start)
		}
		var in dta.Reader
		if err := in.Reset(datagram); err != nil {
			t.Fatal(err)
		}
		for rep := (dta.Report{}); in.Next(&rep); {
			if rep.Primitive == dta.Append {
				lists[rep.List]++
			} else {
				keyed[rep.Primitive]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Record(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	plan := control.DefaultListPlan(r.Topology().Fabric)
	for _, one := range []control.ListRange{plan.Flowsets, plan.Labels, plan.Mirrors, plan.Epochs, plan.DiagnosisRequests} {
		for i := range one.Count {
			id := one.First + dta.ListID(i)
			if lists[id] == 0 {
				t.Errorf("list %d of the plan got no report", id)
			}
			delete(lists, id)
		}
	}
	if len(lists) > 0 {
		t.Errorf("reports to lists that are not in the plan: %v", lists)
	}
	if keyed[dta.KeyWrite] == 0 || keyed[dta.KeyIncrement] == 0 || keyed[dta.Postcarding] == 0 {
		t.Errorf("reports with keys %v; want some of each primitive", keyed)
	}
}

// TestReportersStopAtTheFirstError: a service that is not there ends the run.
func TestReportersStopAtTheFirstError(t *testing.T) {
	refused := errors.New("refused")
	r, err := NewScenarioReporters(recordingScenario(t), time.Now(), func(model.Time, model.NodeID, []byte) error { return refused })
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Record(t.Context(), nil); !errors.Is(err, refused) {
		t.Errorf("Record() = %v; want the error of the first datagram", err)
	}
	if r.Elapsed() > 20*time.Millisecond {
		t.Errorf("it ran for %v after the error; want the step of the first datagram", r.Elapsed())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err = NewScenarioReporters(recordingScenario(t), time.Now(), func(model.Time, model.NodeID, []byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := r.RunRealTime(ctx, RealTime{}); err != nil || r.Elapsed() > 0 {
		t.Errorf("RunRealTime of an ended context = %v after %v; want nil at once", err, r.Elapsed())
	}
}

func TestReportersNeedTelemetry(t *testing.T) {
	s := recordingScenario(t)
	s.Telemetry = nil
	_, err := NewScenarioReporters(s, time.Now(), nil)
	if err == nil || !strings.Contains(err.Error(), "has no telemetry") {
		t.Errorf("error %v; want one that names the missing section", err)
	}
}

// TestSystemRunsAScenario: a scenario is watched to its end, finds its faults, and its API answers
// afterwards.
func TestSystemRunsAScenario(t *testing.T) {
	events := make(chan string, 1000)
	s, err := NewSystem(Options{
		Config: DefaultConfig(), Scenario: recordingScenario(t), Pace: 1000, Store: filepath.Join(t.TempDir(), "weft.duckdb"),
		Listen: "127.0.0.1:0", Event: func(line string) { events <- line },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var lines []string
	for len(lines) == 0 || !strings.Contains(lines[len(lines)-1], "ended") {
		select {
		case line := <-events:
			lines = append(lines, line)
		case err := <-done:
			t.Fatalf("Run() = %v before the scenario has ended", err)
		}
	}
	answer, err := http.Get("http://" + s.Addr().String() + "/api/v1/incidents")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the API answers %s after the end; want 200", answer.Status)
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{"loss: ", "blackhole: ", "storm: "} {
		if !strings.Contains(all, want) {
			t.Errorf("events\n%s\nwant one of %s", all, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run() = %v; want nil", err)
	}
}
