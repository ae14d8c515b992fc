package api

import (
	"bytes"
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

// Incident is the summary of one incident.
type Incident struct {
	ID         string     `json:"id"`
	State      string     `json:"state" enum:"open,closed"`
	Severity   string     `json:"severity" enum:"notice,warning,critical"`
	Cause      string     `json:"cause" doc:"Name of the cause: incast, storm, deadlock, loop, blackhole, loss, imbalance, …"`
	Location   string     `json:"location" doc:"Where it started: a node or a port, e.g. tor6 or tor6:Ethernet8"`
	Summary    string     `json:"summary"`
	Begin      time.Time  `json:"begin"`
	Updated    time.Time  `json:"updated"`
	End        *time.Time `json:"end,omitempty" doc:"Absent while the incident is open"`
	MergedInto string     `json:"merged_into,omitempty" doc:"Id of the incident that it turned out to be part of"`
	Handling   *Handling  `json:"handling,omitempty" doc:"What operators did about it; absent: nothing"`
}

// IncidentDetail is an incident with its evidence, timeline and remedy.
type IncidentDetail struct {
	Incident
	IncidentBody
	OperatorActions []IncidentAction `json:"operator_actions" doc:"What operators did about it, oldest first"`
	Runbook         []RunbookStep    `json:"runbook" doc:"What to do on which node, with the commands of its system"`
	Verification    *Verification    `json:"verification,omitempty" doc:"The newest check whether the fault is still there, since the controller started"`
	Proof           *Proof           `json:"proof,omitempty" doc:"The newest test of the verdict by experiment, since the controller started"`
}

// StoredIncident is the Body of a record.Incident.
type StoredIncident struct {
	IncidentBody
	MergedInto string `json:"merged_into,omitempty"`
}

// IncidentBody is what is known of an incident beyond its summary.
type IncidentBody struct {
	Sentence   string            `json:"sentence" doc:"What happened, as text"`
	EndUnknown bool              `json:"end_unknown,omitempty" doc:"It was open when the controller stopped: end is the time of its last evidence"`
	Parts      []string          `json:"parts" doc:"Ids of incidents that turned out to be part of it"`
	Related    []string          `json:"related" doc:"Ids of incidents with causes of their own that share consequences with this one"`
	Confidence float64           `json:"confidence" minimum:"0" maximum:"1" doc:"That the cause is right; the newest proof is taken in"`
	Origin     *PortRef          `json:"origin,omitempty" doc:"Port where it started"`
	Timeline   []TimelineEntry   `json:"timeline" doc:"Oldest first"`
	Evidence   []SourceEvidence  `json:"evidence" doc:"Evidence by source"`
	Missing    []MissingEvidence `json:"missing" doc:"Useful evidence that is not available"`
	Culprits   []Participant     `json:"culprits" doc:"Largest contribution first"`
	Victims    []Participant     `json:"victims"`
	Jobs       []string          `json:"jobs" doc:"Affected jobs"`
	JobRanks   []JobRanks        `json:"job_ranks,omitempty" doc:"Hosts of each of them that have affected flows"`
	PFCPath    []PortRef         `json:"pfc_path" doc:"PFC propagation path: each port is paused by the next"`
	Loop       []PortRef         `json:"loop" doc:"Ports of the deadlock cycle or of the forwarding loop"`
	Links      []PortRef         `json:"links" doc:"Ports of affected links, to highlight on a map"`
	Nodes      []string          `json:"nodes" doc:"Affected nodes"`
	Actions    []Action          `json:"actions" doc:"Actions of the controller, oldest first"`
	Remedy     string            `json:"remedy" doc:"Recommended action"`
	Diagnoses  []string          `json:"diagnoses" doc:"Ids"`
	Traces     []string          `json:"traces" doc:"Ids"`
	Probes     []string          `json:"probes" doc:"Ids"`
}

// JobRanks is the hosts of a job that an incident affects.
type JobRanks struct {
	Job   string   `json:"job"`
	Hosts []string `json:"hosts" doc:"By name; an address where it has none"`
}

// TimelineEntry is one observation or action.
type TimelineEntry struct {
	Time     time.Time `json:"time"`
	Kind     string    `json:"kind" enum:"begin,evidence,action,diagnosis,change,end,operator"`
	Source   string    `json:"source" doc:"flowsets, traces, labels, epochs, probes, or controller; of kind operator: who"`
	Text     string    `json:"text"`
	Location *PortRef  `json:"location,omitempty"`
	Flow     *FlowRef  `json:"flow,omitempty"`
}

// SourceEvidence is the evidence from one source.
type SourceEvidence struct {
	Source string    `json:"source" doc:"flowsets, traces, labels, epochs, probes"`
	Says   string    `json:"says" enum:"supports,contradicts,nothing"`
	Text   string    `json:"text"`
	Count  int       `json:"count" doc:"Number of observations"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Doubt  string    `json:"doubt,omitempty" doc:"Why this source is not relied on: others count the same packets and contradict it"`
}

// MissingEvidence is useful evidence that is not available.
type MissingEvidence struct {
	Source    string `json:"source"`
	What      string `json:"what"`
	Why       string `json:"why"`
	Requested bool   `json:"requested" doc:"The controller has requested it"`
}

// FlowRef is a flow key with the names of its hosts.
type FlowRef struct {
	Flow model.FlowKey `json:"flow" doc:"E.g. udp 10.0.0.2:4791 > 10.1.0.2:4791"`
	Src  string        `json:"src,omitempty" doc:"Source host; absent if outside the fabric"`
	Dst  string        `json:"dst,omitempty" doc:"Destination host; absent if outside the fabric"`
}

// Participant is a flow or a host that is a culprit or a victim.
type Participant struct {
	Flow   *FlowRef `json:"flow,omitempty"`
	Host   string   `json:"host,omitempty" doc:"Set for a host instead of a flow"`
	Weight float64  `json:"weight" doc:"Contribution, 0 to 1; 0 if unknown"`
	Text   string   `json:"text,omitempty"`
}

// Action is something that the controller did to collect evidence.
type Action struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind" enum:"probe,mark,label-rate,poll,counter,other"`
	Target  string    `json:"target"`
	Outcome string    `json:"outcome,omitempty" doc:"Absent until known"`
	// Answered is when the outcome was known.
	Answered *time.Time `json:"answered,omitempty" doc:"When the outcome was known"`
	Ref      string     `json:"ref,omitempty" doc:"Id of the probe, mark or diagnosis"`
}

// NewIncident returns a record's summary.
func NewIncident(r *record.Incident) Incident {
	i := Incident{
		ID: r.ID, State: "open", Severity: r.Severity, Cause: r.Cause, Location: r.Location,
		Summary: r.Summary, Begin: r.Begin, Updated: r.Updated,
	}
	if !r.End.IsZero() {
		i.State, i.End = "closed", &r.End
	}
	i.MergedInto = mergedInto(r.Body)
	return i
}

// mergedInto returns the incident that one was merged into, by its body. Most were not,
// and their bodies are not decoded.
func mergedInto(body []byte) string {
	var b StoredIncident
	if !bytes.Contains(body, []byte(`"merged_into":`)) || json.Unmarshal(body, &b) != nil {
		return ""
	}
	return b.MergedInto
}

// IncidentsQuery selects incidents.
type IncidentsQuery struct {
	Range
	Paging
	State    string `query:"state" enum:"open,closed"`
	Severity string `query:"severity" enum:"notice,warning,critical"`
	Cause    string `query:"cause" maxLength:"64"`
	Node     string `query:"node" maxLength:"256" doc:"Location of the incident, or an affected node"`
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
	get(s, "/incidents", "list-incidents", "Incidents", "List incidents, newest first",
		coalesced(s, "list-incidents", func(ctx context.Context, in *IncidentsQuery) (Page[Incident], error) {
			q, err := s.query(in.Range, in.Paging)
			if err != nil {
				return Page[Incident]{}, err
			}
			if in.Cause != "" && !slices.Contains(anomaly.CauseNames(), in.Cause) {
				return Page[Incident]{}, fmt.Errorf("cause %q, want one of %s: %w", in.Cause,
					strings.Join(anomaly.CauseNames(), ", "), ErrInvalid)
			}
			q.Node = in.Node
			return scanPage(ctx, s, s.deps.Records.Incidents, q, func(r *record.Incident) (Incident, bool) {
				i := NewIncident(r)
				i.Handling = s.handlingOf(r.ID)
				return i, in.matches(r)
			})
		}))
	get(s, "/incidents/{id}", "get-incident", "Incidents", "One incident with evidence, timeline and remedy",
		func(ctx context.Context, in *idInput) (IncidentDetail, error) {
			r, err := findOne(ctx, s.deps.Records.Incidents, record.Query{Name: in.ID}, "incident")
			if err != nil {
				return IncidentDetail{}, err
			}
			d, err := newIncidentDetail(r)
			if err != nil {
				return d, err
			}
			d.Runbook, d.Verification, d.Proof = s.runbook(&d), s.verifications.newest(d.ID), s.proofs.newest(d.ID)
			return d, s.addOperatorActions(ctx, &d)
		})
}

// newIncidentDetail returns what a record has.
func newIncidentDetail(r *record.Incident) (IncidentDetail, error) {
	d := IncidentDetail{Incident: NewIncident(r)}
	if err := json.Unmarshal(r.Body, &d.IncidentBody); len(r.Body) > 0 && err != nil {
		return d, fmt.Errorf("read body of incident %s: %w", r.ID, err)
	}
	return d, nil
}
