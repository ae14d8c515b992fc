package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Limits of the search for a flow that has ended: how far back, how many diagnoses
// are read, and how many are returned.
const (
	endedFlowLookback = time.Hour
	maxDiagnosesRead  = 200
	maxEndedVerdicts  = 8
)

// diagnoseEndedFlow answers a report of a flow that no host sends any more from the
// diagnoses recorded while it lasted. It returns the error missing if the flow has
// no records.
func (s *Server) diagnoseEndedFlow(ctx context.Context, flow model.FlowKey, since time.Time,
	missing error,
) (id string, err error) {
	now := s.deps.Live.Clock().Now
	from := now.Add(-endedFlowLookback)
	if since.After(from) {
		from = since
	}
	q := record.Query{From: from, To: now, Flow: flow}
	var first, last time.Time
	if _, _, err := walkRecords(ctx, s, s.deps.Records.Flows, q, func(r *record.FlowSlot) bool {
		first = r.Time // the newest comes first
		if last.IsZero() {
			last = r.Time.Add(r.Slot)
		}
		return true
	}); err != nil {
		return "", err
	}
	if last.IsZero() {
		return "", missing
	}
	var found []record.Diagnosis
	read := 0
	q = record.Query{From: first, To: last}
	var broken error
	if _, _, err := walkRecords(ctx, s, s.deps.Records.Diagnoses, q, func(d *record.Diagnosis) bool {
		concerns, err := concernsFlow(d, flow)
		if concerns {
			found = append(found, *d)
		}
		read, broken = read+1, err
		return err == nil && read < maxDiagnosesRead && len(found) < maxEndedVerdicts
	}); err != nil || broken != nil {
		return "", errors.Join(err, broken)
	}
	if len(found) == 0 && errors.Is(missing, ErrUnsupported) {
		return "", missing // it may still be sent, and no diagnosis will come
	}
	return s.deps.Diagnoser.AddCompleted(flow, last, found), nil
}

// concernsFlow reports whether a flow is a victim or a culprit of a verdict. All
// victims of one anomaly share a record.
func concernsFlow(d *record.Diagnosis, flow model.FlowKey) (bool, error) {
	if d.Victim == flow || len(d.Body) == 0 {
		return d.Victim == flow, nil
	}
	var b struct { // skips the graph, which is large
		Culprits []Participant `json:"culprits"`
		Victims  []FlowRef     `json:"victims"`
	}
	if err := json.Unmarshal(d.Body, &b); err != nil {
		return false, fmt.Errorf("read body of diagnosis %s: %w", d.ID, err)
	}
	return slices.ContainsFunc(b.Victims, func(f FlowRef) bool { return f.Flow == flow }) ||
		slices.ContainsFunc(b.Culprits, func(p Participant) bool { return p.Flow != nil && p.Flow.Flow == flow }), nil
}
