package handling

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// memoryStore keeps actions in memory.
type memoryStore struct {
	list []record.IncidentAction
	err  error
}

func (m *memoryStore) AppendIncidentAction(_ context.Context, a record.IncidentAction) error {
	if m.err == nil {
		m.list = append(m.list, a)
	}
	return m.err
}

func (m *memoryStore) IncidentActions(_ context.Context, incident string, limit int) (list []record.IncidentAction, err error) {
	for _, a := range m.list {
		if incident == "" || a.Incident == incident {
			list = append(list, a)
		}
	}
	return list[max(0, len(list)-limit):], m.err
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// TestStateAfterActions: the state follows the actions, and is the same after a restart.
func TestStateAfterActions(t *testing.T) {
	ctx := context.Background()
	m := &memoryStore{}
	b, err := Open(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	act := func(a record.IncidentAction) {
		t.Helper()
		a.Incident, a.Time = "i1", noon
		if _, err := b.Act(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	want := func(acked, assignee string, muted bool) {
		t.Helper()
		again, err := Open(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string]*Book{"": b, " after a restart": again} {
			s := b.State("i1")
			if s.AckedBy != acked || s.Assignee != assignee || b.Muted("i1", noon.Add(30*time.Minute)) != muted || b.Muted("i1", noon.Add(time.Hour)) {
				t.Errorf("state%s %+v; want acked by %q, assigned to %q, muted %v until one hour later", name, s, acked, assignee, muted)
			}
		}
	}
	want("", "", false)
	act(record.IncidentAction{Kind: Ack, Who: "alice"})
	want("alice", "", false)
	act(record.IncidentAction{Kind: Assign, Who: "alice", Text: " bob "})
	act(record.IncidentAction{Kind: Mute, Who: "bob", Until: noon.Add(time.Hour)})
	want("alice", "bob", true)
	act(record.IncidentAction{Kind: Unmute, Who: "bob"})
	act(record.IncidentAction{Kind: Unack, Who: "bob"})
	act(record.IncidentAction{Kind: Comment, Who: "bob", Text: "done"})
	want("", "bob", false)
	if b.State("i2") != (State{}) || b.Muted("i2", noon) {
		t.Error("an incident without actions has a state")
	}
}

// TestRefusedActions: an action that cannot be right, or cannot be stored, has no effect.
func TestRefusedActions(t *testing.T) {
	ctx := context.Background()
	m := &memoryStore{}
	b, err := Open(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []record.IncidentAction{
		{Kind: "drop"},
		{},
		{Kind: "verify"},
		{Kind: Comment},
		{Kind: Comment, Text: " "},
		{Kind: Mute},
		{Kind: Mute, Until: noon},
		{Kind: Mute, Until: noon.Add(32 * 24 * time.Hour)},
		{Kind: Ack, Until: noon.Add(1)},
		{Kind: Assign, Text: "a\nb"},
		{Kind: Assign, Text: strings.Repeat("x", 129)},
		{Kind: Comment, Text: strings.Repeat("x", MaxText+1)},
	} {
		a.Time, a.Incident = noon, "i1"
		if _, err := b.Act(ctx, a); !errors.Is(err, ErrInvalid) {
			t.Errorf("Act(%+v) = %v; want ErrInvalid", a, err)
		}
	}
	m.err = errors.New("disk full")
	if _, err := b.Act(ctx, record.IncidentAction{Time: noon, Incident: "i1", Kind: Ack, Who: "a"}); !errors.Is(err, m.err) || b.State("i1").AckedBy != "" {
		t.Errorf("an action that is not stored: %v, state %+v; want no effect", err, b.State("i1"))
	}
	if len(m.list) != 0 {
		t.Errorf("stored %+v; want nothing", m.list)
	}
}

// TestActionsAreBounded: neither one incident nor many make the book grow without end.
func TestActionsAreBounded(t *testing.T) {
	ctx := context.Background()
	b, err := Open(ctx, &memoryStore{})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for range maxActions + 1 {
		_, last = b.Act(ctx, record.IncidentAction{Time: noon, Incident: "i1", Kind: Comment, Text: "x"})
	}
	if !errors.Is(last, ErrFull) {
		t.Errorf("action %d: %v; want ErrFull", maxActions+1, last)
	}
	for i := range maxStates + 10 {
		b.apply(&record.IncidentAction{Incident: fmt.Sprint("j", i), Kind: Ack, Who: "a"})
	}
	if len(b.states) != maxStates || len(b.order) != maxStates || b.State("i1").actions != 0 || b.State("j100").AckedBy != "a" {
		t.Errorf("%d states, %d in order; want %d, without the oldest", len(b.states), len(b.order), maxStates)
	}
}
