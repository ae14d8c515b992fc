package core

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model/record"
)

// shelf is a store that waits for a word before it keeps a batch.
type shelf struct {
	api.Records
	heap
	taken, keep chan struct{}
}

func (s *shelf) Append(ctx context.Context, b *record.Batch) error {
	s.taken <- struct{}{}
	<-s.keep
	return s.heap.Append(ctx, b)
}

func (s *shelf) Incidents(_ context.Context, q record.Query) (p record.Page[record.Incident], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.kept.Incidents {
		if i.ID == q.Name {
			p.Items = []record.Incident{i} // the last one
		}
	}
	return p, nil
}

// TestAheadOfTheStore follows an incident in flight to a store that takes its
// time: at every step its newest state is found by its id.
func TestAheadOfTheStore(t *testing.T) {
	s := &shelf{taken: make(chan struct{}), keep: make(chan struct{})}
	k := NewBatchWriter(s, time.Hour, 100, slog.New(slog.DiscardHandler))
	r := k.ReadThrough(s)
	find := func(step, want string) {
		t.Helper()
		p, err := r.Incidents(t.Context(), record.Query{Name: "i1", Limit: 1})
		got := ""
		if len(p.Items) > 0 {
			got = p.Items[0].Summary
		}
		if err != nil || got != want {
			t.Errorf("%s: incident i1 is %q, %v; want %q", step, got, err, want)
		}
	}
	say := func(summary string) {
		k.Add(&record.Batch{Incidents: []record.Incident{{ID: "i1", Summary: summary}, {ID: "i2", Summary: "another"}}})
	}
	find("before", "")
	say("begun")
	say("worse")
	find("waiting", "worse")
	ended := make(chan error)
	go func() { ended <- k.Flush(context.Background()) }()
	<-s.taken
	find("with the store", "worse")
	say("over")
	find("with the store and changed", "over")
	s.keep <- struct{}{}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	find("stored and changed", "over")
	go func() { ended <- k.Flush(context.Background()) }()
	<-s.taken
	s.keep <- struct{}{}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	find("stored", "over")
	if w, ok := findPending(k, "i1", func(b *record.Batch) []record.Incident { return b.Incidents }, func(r *record.Incident) string { return r.ID }); ok {
		t.Errorf("stored and still held: %+v", w)
	}
	// A list is the store's, with the newest states.
	k.Add(&record.Batch{Incidents: []record.Incident{{ID: "i1", Summary: "again"}, {ID: "i3", Summary: "new"}}})
	p, err := r.Incidents(t.Context(), record.Query{Name: "i1", Node: "leaf0"})
	if err != nil || len(p.Items) != 1 || p.Items[0].Summary != "again" {
		t.Errorf("a list = %+v, %v; want the store's i1, as it is now", p.Items, err)
	}
	if p, err := r.Incidents(t.Context(), record.Query{Name: "i3", Node: "leaf0"}); err != nil || len(p.Items) != 0 {
		t.Errorf("a list = %+v, %v; want none that the store does not have", p.Items, err)
	}
}
