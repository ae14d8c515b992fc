package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Incident is one thing that went wrong, in short.
type Incident struct {
	ID       string     `json:"id"`
	State    string     `json:"state" enum:"open,closed"`
	Severity string     `json:"severity" enum:"notice,warning,critical"`
	Cause    string     `json:"cause" doc:"Short name of what it is: incast, storm, deadlock, loop, blackhole, loss, imbalance, …"`
	Location string     `json:"place" doc:"Where it began: a node, or node:port"`
	Summary  string     `json:"summary"`
	Begin    time.Time  `json:"begin"`
	Updated  time.Time  `json:"updated"`
	End      *time.Time `json:"end,omitempty" doc:"Absent while it goes on"`
}

// IncidentDetail is all that is known of an incident.
type IncidentDetail struct {
	Incident
	IncidentBody
}

// IncidentBody is the Body of a record.Incident.
type IncidentBody struct {
	Sentence   string            `json:"sentence" doc:"What happened, for people"`
	Confidence float64           `json:"confidence" minimum:"0" maximum:"1"`
	Origin     *PortRef          `json:"origin,omitempty" doc:"Port where it began"`
	Timeline   []TimelineEntry   `json:"timeline" doc:"Oldest first"`
	Evidence   []SourceEvidence  `json:"evidence" doc:"What each source says"`
	Missing    []MissingEvidence `json:"missing" doc:"Evidence that would help and is not there"`
	Culprits   []Participant     `json:"culprits" doc:"Heaviest first"`
	Victims    []Participant     `json:"victims"`
	Jobs       []string          `json:"jobs" doc:"Jobs that were hurt"`
	PFCPath    []PortRef         `json:"pfc_path" doc:"How pauses spread: each port waited for the next"`
	Loop       []PortRef         `json:"loop" doc:"Ports that wait for each other, or that packets circle through"`
	Links      []PortRef         `json:"links" doc:"Ports whose links are concerned, to be marked on a map"`
	Nodes      []string          `json:"nodes" doc:"Nodes that are concerned"`
	Actions    []Action          `json:"actions" doc:"What the controller did about it, oldest first"`
	Remedy     string            `json:"remedy" doc:"What an operator would try"`
	Diagnoses  []string          `json:"diagnoses" doc:"Ids"`
	Traces     []string          `json:"traces" doc:"Ids"`
	Probes     []string          `json:"probes" doc:"Ids"`
}

// TimelineEntry is one thing that was learnt or done.
type TimelineEntry struct {
	Time     time.Time `json:"time"`
	Kind     string    `json:"kind" enum:"begin,evidence,action,diagnosis,change,end"`
	Source   string    `json:"source" doc:"flowsets, traces, labels, epochs, probes, or controller"`
	Text     string    `json:"text"`
	Location *PortRef  `json:"place,omitempty"`
	Flow     *FlowRef  `json:"flow,omitempty"`
}

// SourceEvidence is what one source says of an incident.
type SourceEvidence struct {
	Source string    `json:"source" doc:"flowsets, traces, labels, epochs, probes"`
	Says   string    `json:"says" enum:"supports,contradicts,nothing"`
	Text   string    `json:"text"`
	Count  int       `json:"count" doc:"Observations"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

// MissingEvidence is evidence that is not there.
type MissingEvidence struct {
	Source    string `json:"source"`
	What      string `json:"what"`
	Why       string `json:"why"`
	Requested bool   `json:"asked" doc:"The controller has asked for it"`
}

// FlowRef is a flow with the names of its ends.
type FlowRef struct {
	Flow model.FlowKey `json:"flow" doc:"As in: udp 10.0.0.2:4791 > 10.1.0.2:4791"`
	Src  string        `json:"src,omitempty" doc:"Host; absent outside of the fabric"`
	Dst  string        `json:"dst,omitempty"`
}

// Participant is a flow or a host that did it, or suffers from it.
type Participant struct {
	Flow   *FlowRef `json:"flow,omitempty"`
	Host   string   `json:"host,omitempty" doc:"Where it is a host and not a flow"`
	Weight float64  `json:"weight" doc:"Its part in it, 0 to 1; 0 where not known"`
	Text   string   `json:"text,omitempty"`
}

// Action is something that the controller did to learn more.
type Action struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind" enum:"probe,mark,label-rate,poll,counter,other"`
	Target  string    `json:"target"`
	Outcome string    `json:"outcome,omitempty" doc:"Absent until it is known"`
	Ref     string    `json:"ref,omitempty" doc:"Id of the probe, mark or diagnosis"`
}

// NewIncident shows a record in short.
func NewIncident(r *record.Incident) Incident {
	i := Incident{
		ID: r.ID, State: "open", Severity: r.Severity, Cause: r.Cause, Location: r.Place,
		Summary: r.Summary, Begin: r.Begin, Updated: r.Updated,
	}
	if !r.End.IsZero() {
		i.State, i.End = "closed", &r.End
	}
	return i
}

// IncidentsQuery asks for incidents.
type IncidentsQuery struct {
	Range
	Paging
	State    string `query:"state" enum:"open,closed"`
	Severity string `query:"severity" enum:"notice,warning,critical"`
	Cause    string `query:"cause" maxLength:"64"`
	Node     string `query:"node" maxLength:"256" doc:"That it happened at, or that it concerns"`
}

func (in *IncidentsQuery) matches(i *record.Incident) bool {
	return (in.State == "" || (in.State == "open") == i.End.IsZero()) &&
		(in.Severity == "" || in.Severity == i.Severity) &&
		(in.Cause == "" || in.Cause == i.Cause)
}

type idInput struct {
	ID string `path:"id" maxLength:"128"`
}

func (s *Server) incidentRoutes() {
	get(s, "/incidents", "list-incidents", "Incidents", "Incidents, newest first",
		coalesced(s, "list-incidents", func(ctx context.Context, in *IncidentsQuery) (Page[Incident], error) {
			q, err := s.query(in.Range, in.Paging)
			if err != nil {
				return Page[Incident]{}, err
			}
			if in.Cause != "" && !slices.Contains(anomaly.CauseNames(), in.Cause) {
				return Page[Incident]{}, fmt.Errorf("cause %q, want one of %s: %w", in.Cause, strings.Join(anomaly.CauseNames(), ", "), ErrInvalid)
			}
			q.Node = in.Node
			return scanPage(ctx, s, s.deps.Records.Incidents, q, func(r *record.Incident) (Incident, bool) {
				return NewIncident(r), in.matches(r)
			})
		}))
	get(s, "/incidents/{id}", "get-incident", "Incidents", "One incident, with all that is known of it",
		func(ctx context.Context, in *idInput) (IncidentDetail, error) {
			r, err := findOne(ctx, s.deps.Records.Incidents, record.Query{Name: in.ID}, "incident")
			if err != nil {
				return IncidentDetail{}, err
			}
			d := IncidentDetail{Incident: NewIncident(r)}
			if err := json.Unmarshal(r.Body, &d.IncidentBody); len(r.Body) > 0 && err != nil {
				return d, fmt.Errorf("read body of incident %s: %w", r.ID, err)
			}
			return d, nil
		})
}
