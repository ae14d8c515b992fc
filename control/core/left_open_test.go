package core

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model/record"
)

// stoppedStore has the incidents of a controller that has stopped, in pages of two.
type stoppedStore struct {
	Store
	incidents []record.Incident
	written   record.Batch
}

func (s *stoppedStore) Incidents(_ context.Context, q record.Query) (p record.Page[record.Incident], _ error) {
	from := 0
	_, _ = fmt.Sscan(q.After, &from)
	to := min(from+2, len(s.incidents))
	if p.Items = s.incidents[from:to]; to < len(s.incidents) {
		p.Next = fmt.Sprint(to)
	}
	return p, nil
}

func (s *stoppedStore) Append(_ context.Context, b *record.Batch) error {
	s.written = *b
	return nil
}

// TestIncidentsLeftOpenAreClosed: of five incidents two were open when the controller
// stopped. They are closed with an end that is not known, and nothing else changes.
func TestIncidentsLeftOpenAreClosed(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &stoppedStore{}
	for i := range 5 {
		r := record.Incident{
			ID: fmt.Sprintf("i%d", i), Begin: at, Updated: at.Add(time.Second), Cause: "loop",
			Body: json.RawMessage(`{"sentence":"A loop.","from_another_version":7,"timeline":[{"time":"2026-01-02T03:04:05Z","kind":"begin","source":"traces","text":"x"}]}`),
		}
		if i%3 != 1 {
			r.End = r.Updated
		}
		s.incidents = append(s.incidents, r)
	}
	n, err := CloseLeftOpen(t.Context(), s)
	if err != nil || n != 2 || len(s.written.Incidents) != 2 {
		t.Fatalf("%d closed, %d written, %v; want 2", n, len(s.written.Incidents), err)
	}
	for i, r := range s.written.Incidents {
		var b struct {
			api.IncidentBody
			Other int `json:"from_another_version"`
		}
		if err := json.Unmarshal(r.Body, &b); err != nil {
			t.Fatal(err)
		}
		if r.ID != []string{"i1", "i4"}[i] || !r.End.Equal(r.Updated) || r.Cause != "loop" {
			t.Errorf("%s, %s, closed %v; want it closed with its last evidence", r.ID, r.Cause, r.End)
		}
		if !b.EndUnknown || b.Sentence != "A loop." || b.Other != 7 || len(b.Timeline) != 2 || b.Timeline[1].Kind != "end" {
			t.Errorf("body %s; want an unknown end, and the rest as it was", r.Body)
		}
	}
	s.incidents, s.written = s.written.Incidents, record.Batch{}
	if n, err := CloseLeftOpen(t.Context(), s); n != 0 || err != nil || s.written.Len() != 0 {
		t.Errorf("again: %d closed, %v; want none", n, err)
	}
}
