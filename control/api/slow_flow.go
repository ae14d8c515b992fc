package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// SlowFlowReport is a client's report of a slow flow.
type SlowFlowReport struct {
	Flow  model.FlowKey `json:"flow" doc:"E.g. udp 10.0.0.2:4791 > 10.1.0.2:4791"`
	Since time.Time     `json:"since,omitzero" doc:"When it became slow; default: now"`
}

// SlowFlow is a report and its verdicts. It contains no flow without an end at the
// reporter's own addresses.
type SlowFlow struct {
	ID       string            `json:"id"`
	Flow     model.FlowKey     `json:"flow"`
	Time     time.Time         `json:"time"`
	State    string            `json:"state" enum:"waiting,done"`
	Verdicts []SlowFlowVerdict `json:"verdicts" doc:"Empty when done: no network problem found, or no telemetry available"`
}

// SlowFlowVerdict is the part of a verdict that the reporter may see.
type SlowFlowVerdict struct {
	Anomaly     string          `json:"anomaly"`
	RootCause   string          `json:"root_cause"`
	CauseDetail string          `json:"cause_detail,omitempty"`
	Confidence  float64         `json:"confidence" minimum:"0" maximum:"1"`
	Role        string          `json:"role" enum:"victim,culprit" doc:"Role of the reported flow"`
	Culprits    []CulpritFlow   `json:"your_culprits" doc:"Your flows that contribute to the cause"`
	Victims     []model.FlowKey `json:"your_victims" doc:"Your flows that were delayed"`
	Others      bool            `json:"others_involved" doc:"Flows of other tenants contribute to the cause"`
	Advice      string          `json:"advice"`
	Diagnosis   string          `json:"diagnosis_id,omitempty" doc:"For the operator only"`
}

// CulpritFlow is one of the reporter's flows and its contribution to the cause.
type CulpritFlow struct {
	Flow   model.FlowKey `json:"flow"`
	Weight float64       `json:"weight" doc:"0 to 1"`
}

var errNoDiagnoser = fmt.Errorf("slow flows: this controller cannot diagnose flows: %w", ErrUnsupported)

type slowFlowInput struct {
	WaitMs int `query:"wait_ms" minimum:"0" maximum:"5000" doc:"Wait up to this long for a verdict"`
	Body   SlowFlowReport
}

func (s *Server) slowFlowRoutes() {
	op := s.operation(http.MethodPost, "/slow-flows", "report-slow-flow", "Slow flows",
		"Report a slow flow and request a diagnosis")
	op.DefaultStatus = http.StatusAccepted
	allowTenants(&op)
	register(s, op, s.reportSlowFlow)
	op = s.operation(http.MethodGet, "/slow-flows", "list-slow-flows", "Slow flows",
		"List reported slow flows, newest first; a tenant sees its own")
	allowTenants(&op)
	register(s, op, func(ctx context.Context, _ *struct{}) (Page[SlowFlow], error) {
		if s.deps.Diagnoser == nil {
			return Page[SlowFlow]{}, errNoDiagnoser
		}
		return s.listSlowFlows(callerOf(ctx))
	})
	op = s.operation(http.MethodGet, "/slow-flows/{id}", "get-slow-flow", "Slow flows",
		"One reported slow flow and its verdicts")
	allowTenants(&op)
	register(s, op, func(ctx context.Context, in *idInput) (SlowFlow, error) {
		if s.deps.Diagnoser == nil {
			return SlowFlow{}, errNoDiagnoser
		}
		who := callerOf(ctx)
		c, err := s.deps.Diagnoser.DiagnosisRequest(ctx, in.ID)
		if err != nil {
			return SlowFlow{}, err
		}
		if !s.owns(who, c.Flow) {
			// The same error as for an unknown id: callers without permission must
			// not learn that it exists.
			return SlowFlow{}, fmt.Errorf("slow flow %q: %w", in.ID, ErrNotFound)
		}
		return s.slowFlowView(who, &c)
	})
}

func (s *Server) listSlowFlows(who *caller) (p Page[SlowFlow], err error) {
	all := s.deps.Diagnoser.DiagnosisRequests()
	for i := range all {
		if !s.owns(who, all[i].Flow) {
			continue
		}
		v, err := s.slowFlowView(who, &all[i])
		if err != nil {
			return p, err
		}
		p.Items = append(p.Items, v)
	}
	return p, nil
}

// diagnosisPollInterval is how often a waiting request checks for a verdict.
const diagnosisPollInterval = 20 * time.Millisecond

func (s *Server) reportSlowFlow(ctx context.Context, in *slowFlowInput) (v SlowFlow, err error) {
	if s.deps.Diagnoser == nil {
		return v, errNoDiagnoser
	}
	who := callerOf(ctx)
	if in.Body.Flow.IsZero() {
		return v, fmt.Errorf("report without a flow, want a flow key: %w", ErrInvalid)
	}
	if !s.owns(who, in.Body.Flow) {
		return v, fmt.Errorf("flow %s: %w: neither end belongs to you", in.Body.Flow, errForbidden)
	}
	if !who.diagnosisRequests.allow(time.Now()) {
		return v, fmt.Errorf("slow flows: more than %g reports per second: %w", diagnosisRequestRate, ErrBusy)
	}
	id, err := s.deps.Diagnoser.RequestDiagnosis(ctx, in.Body.Flow, in.Body.Since)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsupported) { // what was found before may answer it
		id, err = s.diagnoseEndedFlow(ctx, in.Body.Flow, in.Body.Since, err)
	}
	if err != nil {
		return v, err
	}
	deadline := time.Now().Add(time.Duration(in.WaitMs) * time.Millisecond)
	for {
		c, err := s.deps.Diagnoser.DiagnosisRequest(ctx, id)
		if err != nil {
			return v, err
		}
		if c.Done || time.Now().After(deadline) {
			return s.slowFlowView(who, &c)
		}
		select {
		case <-ctx.Done():
			return v, ctx.Err()
		case <-time.After(diagnosisPollInterval):
		}
	}
}

// slowFlowView returns the part of a request that the caller may see. It copies
// only enumerated values and the caller's own flows from a verdict: free text may
// name others.
func (s *Server) slowFlowView(who *caller, c *DiagnosisRequest) (v SlowFlow, err error) {
	v = SlowFlow{ID: c.ID, Flow: c.Flow, Time: c.Time, State: "waiting", Verdicts: []SlowFlowVerdict{}}
	if c.Done {
		v.State = "done"
	}
	for i := range c.Diagnoses {
		o, err := s.slowFlowVerdict(who, &c.Diagnoses[i], c.Flow)
		if err != nil {
			return v, err
		}
		v.Verdicts = append(v.Verdicts, o)
	}
	return v, nil
}

func (s *Server) slowFlowVerdict(who *caller, d *record.Diagnosis, flow model.FlowKey) (o SlowFlowVerdict, err error) {
	var b DiagnosisBody
	if err := json.Unmarshal(d.Body, &b); len(d.Body) > 0 && err != nil {
		return o, fmt.Errorf("read body of diagnosis %s: %w", d.ID, err)
	}
	o = SlowFlowVerdict{
		Anomaly: d.Anomaly, RootCause: d.RootCause, CauseDetail: b.CauseDetail, Confidence: d.Confidence,
		Role: "victim", Culprits: []CulpritFlow{}, Victims: []model.FlowKey{},
	}
	if who.tenant == nil {
		o.Diagnosis = d.ID
	}
	for _, p := range b.Culprits {
		switch {
		case p.Flow == nil:
			o.Others = true // a host
		case !s.owns(who, p.Flow.Flow):
			o.Others = true
		default:
			o.Culprits = append(o.Culprits, CulpritFlow{p.Flow.Flow, p.Weight})
			if p.Flow.Flow == flow {
				o.Role = "culprit"
			}
		}
	}
	for _, f := range b.Victims {
		if s.owns(who, f.Flow) {
			o.Victims = append(o.Victims, f.Flow)
		}
	}
	o.Advice = o.advice()
	return o, nil
}

// advice is for the reporter, who can change only its own flows.
func (o *SlowFlowVerdict) advice() string {
	switch {
	case len(o.Culprits) > 0 && o.Others:
		return "Your flows and flows of others cause the congestion: stagger their starts or reduce their rate. " +
			"The operator sees the details."
	case len(o.Culprits) > 0:
		return "Your own flows cause the congestion: stagger their starts or reduce their rate."
	case o.Others:
		return "Your flows are not the cause. The operator sees the details."
	}
	return "None of your flows contributes to the cause. If the problem persists, contact the operator."
}
