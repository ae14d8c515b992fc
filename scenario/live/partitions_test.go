package live

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model/record"
)

// transcript runs the whole programme and returns every state of every incident, in the
// order in which the controller wrote them, and the score. The controller is part of the
// loop: its marks, probes and polls are packets of the fabric, so a finding that comes
// otherwise changes all that follows.
func transcript(t *testing.T, cfg Config, partitions int) string {
	t.Helper()
	var d *Director
	var b strings.Builder
	out := control.Output{
		Incident: func(in *incident.Incident) { d.ObserveIncident(in) },
		Records: func(batch *record.Batch) {
			for i := range batch.Incidents {
				line, err := json.Marshal(&batch.Incidents[i])
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%s\n", line)
			}
		},
	}
	sim, err := newDemoSimulation(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := sim.demoController(cfg, time.Unix(0, 0).UTC())
	c.Flows.Partitions = partitions
	controller, err := control.New(c, sim.devices, out)
	if err != nil {
		t.Fatal(err)
	}
	sim.attach(controller)
	d = NewDirector(sim)
	s, err := d.RunProgramme(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	score, err := json.Marshal(s.Describe(sim, d))
	if err != nil {
		t.Fatal(err)
	}
	if s.Missed > 0 || b.Len() == 0 {
		t.Fatalf("%d partitions: %d faults missed; want a programme whose faults are found", partitions, s.Missed)
	}
	fmt.Fprintf(&b, "%s\n", score)
	return b.String()
}

// TestPartitionsChangeNoIncident: the number of partitions of the flows changes no state
// of any incident of the programme.
func TestPartitionsChangeNoIncident(t *testing.T) {
	race.LeaveToPlainRun(t)
	cfg := slow(1)
	want := transcript(t, cfg, 1)
	for _, partitions := range []int{2, 8} {
		got := transcript(t, cfg, partitions)
		if got == want {
			continue
		}
		a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Errorf("line %d of %d with one partition:\n%s\nof %d with %d partitions:\n%s", i+1, len(a), a[i], len(b), partitions, b[i])
				break
			}
		}
		if len(a) != len(b) {
			t.Errorf("%d states of incidents with one partition, %d with %d", len(a), len(b), partitions)
		}
	}
}
