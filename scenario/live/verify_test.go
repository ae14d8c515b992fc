package live

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// verifyBed is a demo whose incidents can be verified.
type verifyBed struct {
	*Simulation
	director *Director
	backend  *control.Backend
	records  map[string]record.Incident
}

func newVerifyBed(t *testing.T, seed uint64) *verifyBed {
	t.Helper()
	b := &verifyBed{records: map[string]record.Incident{}}
	l, err := NewDemo(small(seed), control.Output{
		Incident: func(in *incident.Incident) { b.director.ObserveIncident(in) },
		Records: func(batch *record.Batch) {
			for _, r := range batch.Incidents {
				b.records[r.ID] = r
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	b.Simulation, b.director = l, NewDirector(l)
	b.backend = control.NewBackend(l.Controller, func(_ context.Context, f func()) error { f(); return nil }, api.NewEventHub(16, 16))
	pass(t, l, 50*time.Millisecond)
	return b
}

// inject injects a fault and returns it, and the id of its incident.
func (b *verifyBed) inject(t *testing.T, kind, node string, port model.PortID, span time.Duration) (Fault, string) {
	t.Helper()
	at, _ := b.fabric.ByName(node)
	f, err := b.director.Inject(kind, Location{Node: at, Port: port, set: true}, span)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if pass(t, b.Simulation, 10*time.Millisecond); f.Found {
			return f.Fault, fmt.Sprintf("i%d", f.Incident)
		}
	}
	t.Fatalf("%s was not found", f.What)
	return Fault{}, ""
}

// detail returns an incident as the API has it.
func (b *verifyBed) detail(t *testing.T, id string) api.IncidentDetail {
	t.Helper()
	r := b.records[id]
	d := api.IncidentDetail{Incident: api.NewIncident(&r)}
	if err := json.Unmarshal(r.Body, &d.IncidentBody); err != nil {
		t.Fatal(err)
	}
	return d
}

// verify verifies an incident and waits for the result.
func (b *verifyBed) verify(t *testing.T, d api.IncidentDetail) api.Verification {
	t.Helper()
	var result *api.Verification
	if _, err := b.backend.VerifyIncident(t.Context(), &d, func(v api.Verification) { result = &v }); err != nil {
		t.Fatal(err)
	}
	if _, err := b.backend.VerifyIncident(t.Context(), &d, nil); err == nil {
		t.Error("a second verification of the same incident was started")
	}
	for range 60 {
		if pass(t, b.Simulation, 10*time.Millisecond); result != nil {
			t.Logf("%s at %v: %s: %s", d.ID, time.Duration(b.Now()), result.Outcome, result.Text)
			return *result
		}
	}
	t.Fatalf("verification of %s has no result", d.ID)
	return api.Verification{}
}

// TestVerify verifies incidents while their fault is there, after it was repaired, and
// after it came back: the first stays open, the second is closed, the third is opened
// again.
func TestVerify(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, tc := range []struct {
		kind string
		node string
		port model.PortID
	}{{"blackhole", "leaf1", 0}, {"silent-drop", "tor6", 3}, {"storm", "h4", 0}, {"loop", "leaf5", 0}} {
		t.Run(tc.kind, func(t *testing.T) {
			b := newVerifyBed(t, 11)
			const span = 150 * time.Millisecond
			began := b.Now()
			f, id := b.inject(t, tc.kind, tc.node, tc.port, span)
			d := b.detail(t, id)
			if v := b.verify(t, d); v.Outcome != "persists" || v.SeenAs != "" || b.detail(t, id).State != "open" {
				t.Errorf("%s while it lasts: %+v, incident %s; want persists and open", tc.kind, v, b.detail(t, id).State)
			}
			old := d
			old.ID = "i999" // of an earlier controller: it is known from its record only
			if v := b.verify(t, old); v.Outcome != "persists" || v.SeenAs != id {
				t.Errorf("%s of an earlier controller: %+v; want persists, seen as %s", tc.kind, v, id)
			}
			pass(t, b.Simulation, max(0, began.Add(span+30*time.Millisecond).Sub(b.Now())))
			if v := b.verify(t, d); v.Outcome != "recovered" || b.detail(t, id).State != "closed" {
				t.Errorf("%s after its repair: %+v, incident %s; want recovered and closed", tc.kind, v, b.detail(t, id).State)
			}
			pass(t, b.Simulation, 100*time.Millisecond)
			for _, a := range b.detail(t, id).Actions {
				if a.Kind != "poll" && (a.Outcome == "" || a.Answered == nil || !a.Answered.After(a.Time)) {
					t.Errorf("%s of %s has outcome %q at %v; want one after %v", a.Kind, a.Target, a.Outcome, a.Answered, a.Time)
				}
			}
			f.At = b.elapsed()
			if _, err := b.director.start(f); err != nil {
				t.Fatal(err)
			}
			if v := b.verify(t, d); v.Outcome != "persists" || v.SeenAs != "" || b.detail(t, id).State != "open" {
				t.Errorf("%s came back: %+v, incident %s; want persists, and %s open again", tc.kind, v, b.detail(t, id).State, id)
			}
		})
	}
}
