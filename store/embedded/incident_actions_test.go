package embedded

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// TestIncidentActions: actions are kept in order, by incident, over a restart, and go
// with their incident.
func TestIncidentActions(t *testing.T) {
	ctx := context.Background()
	cfg := DefaultConfig()
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	cfg.Retention = store.Retention{store.Incidents: time.Hour}
	s, err := Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	old, young := record.Incident{ID: "i1", Begin: at, Updated: at}, record.Incident{ID: "i2", Begin: at, Updated: at.Add(2 * time.Hour)}
	if err := s.Append(ctx, &record.Batch{Incidents: []record.Incident{old, young}}); err != nil {
		t.Fatal(err)
	}
	want := []record.IncidentAction{
		{Time: at, Incident: "i1", Kind: "ack", Who: "alice"},
		{Time: at.Add(1), Incident: "i2", Kind: "mute", Who: "bob", Text: "new optics ordered", Until: at.Add(time.Hour)},
		{Time: at, Incident: "i2", Kind: "comment", Who: "bob", Text: "it's 'quoted'; -- \"so\""},
	}
	for _, a := range want {
		if err := s.AppendIncidentAction(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AppendIncidentAction(ctx, record.IncidentAction{Incident: "i1", Time: at, Text: "\xff"}); err == nil {
		t.Error("a text that is not UTF-8 is stored")
	}
	check := func(incident string, limit int, want ...record.IncidentAction) {
		t.Helper()
		got, err := s.IncidentActions(ctx, incident, limit)
		if diff := cmp.Diff(append([]record.IncidentAction{}, want...), got); err != nil || diff != "" {
			t.Errorf("actions of %q: %v\n%s", incident, err, diff)
		}
	}
	check("", 10, want...)
	check("", 2, want[1:]...)
	check("i2", 10, want[1:]...)
	check("i3", 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(path, cfg); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	check("", 10, want...)
	if _, err := s.Maintain(ctx, at.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	check("", 10, want[1:]...)
	last := record.IncidentAction{Time: at, Incident: "i2", Kind: "ack", Who: "carol"}
	if err := s.AppendIncidentAction(ctx, last); err != nil {
		t.Fatal(err)
	}
	check("i2", 10, append(want[1:3:3], last)...)
}

// TestIncidentActionsAreSalvaged: a repair keeps what operators did, once.
func TestIncidentActionsAreSalvaged(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "old.duckdb"), filepath.Join(dir, "new.duckdb")
	s, err := Open(from, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	want := []record.IncidentAction{
		{Time: at, Incident: "i1", Kind: "ack", Who: "alice"}, {Time: at, Incident: "i1", Kind: "mute", Who: "bob", Until: at.Add(time.Hour)},
	}
	err = s.Append(ctx, &record.Batch{Incidents: []record.Incident{{ID: "i1", Begin: at, Updated: at}}})
	for _, a := range want {
		err = errors.Join(err, s.AppendIncidentAction(ctx, a))
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := RepairFile(ctx, from, to, DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(to, DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.IncidentActions(ctx, "", 10)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("salvaged actions: %v\n%s", err, diff)
	}
}
