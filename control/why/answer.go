package why

import (
	"context"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// Source is what an answer is made of; a client.Client is one.
type Source interface {
	Flow(ctx context.Context, key model.FlowKey, r api.Range) (api.FlowDetail, error)
	Flows(ctx context.Context, q api.FlowsQuery) (api.FlowPage, error)
	Incidents(ctx context.Context, q api.IncidentsQuery) (api.Page[api.Incident], error)
	Incident(ctx context.Context, id string) (api.IncidentDetail, error)
	Diagnosis(ctx context.Context, id string) (api.DiagnosisDetail, error)
}

// Asker asks a source about a range of time.
type Asker struct {
	Source Source
	Range  api.Range
	Clock  func(time.Time) string // formats times
}

// Answer says why a flow or a host is slow.
type Answer struct {
	Subject string   `json:"subject"` // the flow, or the host
	Hosts   string   `json:"hosts,omitempty"`
	Causes  []Cause  `json:"causes"` // the most certain first
	Facts   []string `json:"facts"`  // what is known besides: counts, path, ports
	Unknown []string `json:"unknown,omitempty"`
}

// Cause is one reason, with what it rests on.
type Cause struct {
	Text     string   `json:"text"`
	Kind     Kind     `json:"kind"`
	ID       string   `json:"id,omitempty"` // of the incident or diagnosis
	Open     bool     `json:"open"`         // it goes on
	Evidence []string `json:"evidence"`
	Remedy   string   `json:"remedy,omitempty"`
}

// Kind is what a cause was found by, the most certain first.
type Kind string

// Kinds.
const (
	Involved Kind = "incident"  // an incident that names the flow or the host
	OnPath   Kind = "on-path"   // an incident at a port of the flow's path
	Verdict  Kind = "diagnosis" // a diagnosis of the flow
	Lost     Kind = "loss"      // packets of the flow that were lost
	Paused   Kind = "paused"    // a port of the path that PFC paused
)

// maxIncidents bounds the incidents that are read for an answer.
const maxIncidents = 200

// details reads the incidents of a range.
func (q *Asker) details(ctx context.Context) (list []api.IncidentDetail, complete bool, err error) {
	page, err := q.Source.Incidents(ctx, api.IncidentsQuery{Range: q.Range, Paging: api.Paging{Limit: maxIncidents}})
	if err != nil {
		return nil, false, err
	}
	for i := range page.Items {
		if page.Items[i].Severity == "notice" {
			continue
		}
		d, err := q.Source.Incident(ctx, page.Items[i].ID)
		if err != nil {
			return nil, false, err
		}
		if d.MergedInto == "" {
			list = append(list, d)
		}
	}
	return list, page.Next == "", nil
}

// incidentCause is an incident as a cause; how says what it has to do with the subject.
func (q *Asker) incidentCause(d *api.IncidentDetail, kind Kind, how string) Cause {
	c := Cause{Text: how + ": " + d.Summary, Kind: kind, ID: d.ID, Open: d.End == nil, Remedy: d.Remedy}
	if d.End == nil {
		c.Evidence = append(c.Evidence, "open since "+q.Clock(d.Begin))
	} else {
		c.Evidence = append(c.Evidence, "from "+q.Clock(d.Begin)+" to "+q.Clock(*d.End))
	}
	for _, e := range d.Evidence {
		if e.Says == "supports" {
			c.Evidence = append(c.Evidence, e.Source+": "+e.Text)
		}
	}
	return c
}
