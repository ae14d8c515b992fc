package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/control/handling"
	"github.com/weft-telemetry/weft/model/record"
)

// Handling is what operators did about an incident so far.
type Handling struct {
	AckedBy    string     `json:"acked_by,omitempty"`
	AckedAt    *time.Time `json:"acked_at,omitempty"`
	MutedBy    string     `json:"muted_by,omitempty"`
	MutedUntil *time.Time `json:"muted_until,omitempty" doc:"Until then it raises no alerts"`
	Assignee   string     `json:"assignee,omitempty"`
	Proof      string     `json:"proof,omitempty" enum:"proven,partly proven,refuted,not shown" doc:"Outcome of the newest proof of its verdict"`
}

// NewHandling returns the state of an incident; nil if no one has done anything.
func NewHandling(s handling.State) *Handling {
	h := Handling{AckedBy: s.AckedBy, MutedBy: s.MutedBy, Assignee: s.Assignee, Proof: s.Proof}
	if !s.AckedAt.IsZero() {
		h.AckedAt = &s.AckedAt
	}
	if !s.MutedUntil.IsZero() {
		h.MutedUntil = &s.MutedUntil
	}
	if h == (Handling{}) {
		return nil
	}
	return &h
}

// IncidentActionRequest is what an operator does about an incident.
type IncidentActionRequest struct {
	Kind  string    `json:"kind" enum:"ack,unack,mute,unmute,assign,comment"`
	Text  string    `json:"text,omitempty" maxLength:"4096" doc:"The comment; assign: who; else a reason"`
	Until time.Time `json:"until,omitzero" doc:"Mute: its end, by the fabric's clock, at most 31 days from now; alternative to for_ms"`
	ForMs int64     `json:"for_ms,omitempty" minimum:"1" maximum:"2678400000" doc:"Mute: how long, by the fabric's clock"`
}

// IncidentAction is what an operator did about an incident.
type IncidentAction struct {
	Time  time.Time  `json:"time"`
	Kind  string     `json:"kind" enum:"ack,unack,mute,unmute,assign,comment,verify,prove"`
	Who   string     `json:"who"`
	Text  string     `json:"text,omitempty"`
	Until *time.Time `json:"until,omitempty" doc:"End of a mute"`
}

func newIncidentAction(r *record.IncidentAction) IncidentAction {
	a := IncidentAction{Time: r.Time, Kind: r.Kind, Who: r.Who, Text: r.Text}
	if !r.Until.IsZero() {
		a.Until = &r.Until
	}
	return a
}

var errNoHandling = fmt.Errorf("incidents: this controller has no store that keeps what operators do: %w", ErrUnsupported)

type incidentActionInput struct {
	ID   string `path:"id" maxLength:"128"`
	Body IncidentActionRequest
}

func (s *Server) incidentActionRoutes() {
	post(s, "/incidents/{id}/actions", "act-on-incident", "Incidents",
		"Acknowledge, mute, assign or comment an incident",
		func(ctx context.Context, in *incidentActionInput) (IncidentAction, error) {
			a := record.IncidentAction{
				Time: s.deps.Live.Clock().Now.UTC(), Incident: in.ID, Kind: in.Body.Kind, Who: callerOf(ctx).name(),
				Text: in.Body.Text, Until: in.Body.Until.UTC(),
			}
			switch {
			case in.Body.ForMs > 0 && !in.Body.Until.IsZero():
				return IncidentAction{}, fmt.Errorf("until and for_ms, want one of them: %w", ErrInvalid)
			case in.Body.ForMs > 0:
				a.Until = a.Time.Add(time.Duration(in.Body.ForMs) * time.Millisecond)
			case in.Body.Until.IsZero():
				a.Until = time.Time{}
			}
			return s.actOnIncident(ctx, a)
		})
}

// actOnIncident stores an action about an incident that exists, and reports its new
// state to clients.
func (s *Server) actOnIncident(ctx context.Context, a record.IncidentAction) (IncidentAction, error) {
	if s.deps.Handling == nil {
		return IncidentAction{}, errNoHandling
	}
	r, err := findOne(ctx, s.deps.Records.Incidents, record.Query{Name: a.Incident}, "incident")
	if err != nil {
		return IncidentAction{}, err
	}
	state, err := s.deps.Handling.Act(ctx, a)
	switch {
	case errors.Is(err, handling.ErrInvalid):
		return IncidentAction{}, fmt.Errorf("%w: %w", err, ErrInvalid)
	case errors.Is(err, handling.ErrFull):
		return IncidentAction{}, fmt.Errorf("%w: %w", err, ErrConflict)
	case err != nil:
		return IncidentAction{}, err
	}
	i := NewIncident(r)
	i.Handling = NewHandling(state)
	s.deps.Hub.Publish(i)
	return newIncidentAction(&a), nil
}

// handlingOf returns the state of an incident.
func (s *Server) handlingOf(id string) *Handling {
	if s.deps.Handling == nil {
		return nil
	}
	return NewHandling(s.deps.Handling.State(id))
}

// addOperatorActions adds what operators did to an incident and its timeline.
func (s *Server) addOperatorActions(ctx context.Context, d *IncidentDetail) error {
	if s.deps.Handling == nil {
		return nil
	}
	if d.Handling = s.handlingOf(d.ID); d.Handling != nil {
		d.Confidence = withProof(d.Confidence, d.Cause, d.Handling.Proof)
	}
	list, err := s.deps.Handling.Actions(ctx, d.ID)
	if err != nil {
		return fmt.Errorf("read what operators did about incident %s: %w", d.ID, err)
	}
	for i := range list {
		d.OperatorActions = append(d.OperatorActions, newIncidentAction(&list[i]))
		d.Timeline = append(d.Timeline, TimelineEntry{
			Time: list[i].Time, Kind: "operator", Source: list[i].Who, Text: handling.Describe(&list[i]),
		})
	}
	slices.SortStableFunc(d.Timeline, func(a, b TimelineEntry) int { return a.Time.Compare(b.Time) })
	return nil
}
