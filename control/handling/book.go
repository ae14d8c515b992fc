// Package handling keeps what operators do about incidents: who acknowledged, muted or
// was assigned one, and what they wrote about it. Every action is stored before it has
// an effect; the present state of each incident is held in memory.
package handling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// Kinds of actions.
const (
	Ack     = "ack"    // someone is working on it
	Unack   = "unack"  // it is open for others again
	Mute    = "mute"   // no alerts until its end
	Unmute  = "unmute" // before its end
	Assign  = "assign" // Text is the assignee; empty: none
	Comment = "comment"
	Verify  = "verify" // Text is the result of a check of the fault
	Prove   = "prove"  // Text is the outcome of a proof of the verdict, a colon, and what it rests on
)

// Kinds returns all kinds.
func Kinds() []string { return []string{Ack, Unack, Mute, Unmute, Assign, Comment, Verify, Prove} }

// Limits.
const (
	MaxText    = 4096                // bytes of a comment
	maxName    = 128                 // bytes of an assignee
	maxMute    = 31 * 24 * time.Hour // longer is a setting, not a mute
	maxActions = 1000                // of one incident
	maxStates  = 16384               // incidents whose state is held
)

// Errors that a caller branches on.
var (
	ErrInvalid = errors.New("invalid action")
	ErrFull    = errors.New("too many actions")
)

// State is the present state of an incident.
type State struct {
	AckedBy    string
	AckedAt    time.Time
	MutedBy    string
	MutedUntil time.Time
	Assignee   string
	Proof      string // outcome of the newest proof that has one
	actions    int
}

// Muted reports whether alerts are held back at a time.
func (s *State) Muted(at time.Time) bool { return at.Before(s.MutedUntil) }

// Store keeps actions.
type Store interface {
	AppendIncidentAction(ctx context.Context, a record.IncidentAction) error
	IncidentActions(ctx context.Context, incident string, limit int) ([]record.IncidentAction, error)
}

// Book is the actions about all incidents. It is safe for concurrent use.
type Book struct {
	store Store

	mu     sync.Mutex
	states map[string]*State
	order  []string // of states, the one that was acted on first first
}

// Open reads the state of incidents from a store.
func Open(ctx context.Context, s Store) (*Book, error) {
	b := &Book{store: s, states: map[string]*State{}}
	list, err := s.IncidentActions(ctx, "", 4*maxStates)
	if err != nil {
		return nil, fmt.Errorf("read what operators did: %w", err)
	}
	for i := range list {
		b.apply(&list[i])
	}
	return b, nil
}

// Act checks, stores and applies an action.
func (b *Book) Act(ctx context.Context, a record.IncidentAction) (State, error) {
	if err := check(&a); err != nil {
		return State{}, err
	}
	b.mu.Lock()
	s := b.states[a.Incident]
	full := s != nil && s.actions >= maxActions
	b.mu.Unlock()
	if full {
		return State{}, fmt.Errorf("incident %s has %d actions already: %w", a.Incident, maxActions, ErrFull)
	}
	if err := b.store.AppendIncidentAction(ctx, a); err != nil {
		return State{}, err
	}
	return b.apply(&a), nil
}

func check(a *record.IncidentAction) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrInvalid)
	}
	a.Text = strings.TrimSpace(a.Text)
	switch {
	case len(a.Text) > MaxText:
		return bad("text of %d bytes, want at most %d", len(a.Text), MaxText)
	case (a.Kind == Comment || a.Kind == Verify || a.Kind == Prove) && a.Text == "":
		return bad("%s without text", a.Kind)
	case a.Kind == Assign && (len(a.Text) > maxName || strings.ContainsAny(a.Text, "\r\n\t")):
		return bad("assignee %.20q, want a name of at most %d bytes in one line", a.Text, maxName)
	case a.Kind == Mute && !a.Until.After(a.Time):
		return bad("mute until %s, want a time in the future", a.Until.Format(time.RFC3339))
	case a.Kind == Mute && a.Until.Sub(a.Time) > maxMute:
		return bad("mute until %s, want at most 31 days from now", a.Until.Format(time.RFC3339))
	case a.Kind != Mute && !a.Until.IsZero():
		return bad("%s with an end, want none: only a mute has one", a.Kind)
	case !slices.Contains(Kinds(), a.Kind):
		return bad("kind %q, want one of %s", a.Kind, strings.Join(Kinds(), ", "))
	}
	return nil
}

// apply changes the state of an incident.
func (b *Book) apply(a *record.IncidentAction) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.states[a.Incident]
	if s == nil {
		if len(b.order) >= maxStates {
			delete(b.states, b.order[0])
			b.order = slices.Delete(b.order, 0, 1)
		}
		s = &State{}
		b.states[a.Incident] = s
		b.order = append(b.order, a.Incident)
	}
	s.actions++
	switch a.Kind {
	case Ack:
		s.AckedBy, s.AckedAt = a.Who, a.Time
	case Unack:
		s.AckedBy, s.AckedAt = "", time.Time{}
	case Mute:
		s.MutedBy, s.MutedUntil = a.Who, a.Until
	case Unmute:
		s.MutedBy, s.MutedUntil = "", time.Time{}
	case Assign:
		s.Assignee = a.Text
	case Prove:
		if outcome, _, _ := strings.Cut(a.Text, ":"); outcome != "failed" {
			s.Proof = outcome
		}
	}
	return *s
}

// State returns the present state of an incident.
func (b *Book) State(incident string) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.states[incident]; s != nil {
		return *s
	}
	return State{}
}

// Muted reports whether alerts about an incident are held back at a time.
func (b *Book) Muted(incident string, at time.Time) bool {
	s := b.State(incident)
	return s.Muted(at)
}

// Actions returns the actions about an incident, oldest first.
func (b *Book) Actions(ctx context.Context, incident string) ([]record.IncidentAction, error) {
	return b.store.IncidentActions(ctx, incident, maxActions)
}

// Describe returns an action as a line of a timeline.
func Describe(a *record.IncidentAction) string {
	text := ""
	if a.Text != "" {
		text = ": " + a.Text
	}
	switch a.Kind {
	case Ack:
		return "acknowledged" + text
	case Unack:
		return "took the acknowledgement back" + text
	case Mute:
		return "muted alerts until " + a.Until.UTC().Format(time.DateTime) + text
	case Unmute:
		return "unmuted alerts" + text
	case Assign:
		if a.Text == "" {
			return "assigned it to no one"
		}
		return "assigned it to " + a.Text
	case Verify:
		return "verified" + text
	case Prove:
		return "tested by experiment" + text
	}
	return a.Text
}
