package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// RequestDiagnosis returns the first diagnosis for every flow, at the second poll.
func (k *fake) RequestDiagnosis(_ context.Context, flow model.FlowKey, _ time.Time) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := fmt.Sprintf("c-%d", len(k.requests))
	k.requests[id] = DiagnosisRequest{ID: id, Flow: flow, Time: epoch0}
	return id, nil
}

// AddCompleted adds a completed request.
func (k *fake) AddCompleted(flow model.FlowKey, at time.Time, found []record.Diagnosis) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := fmt.Sprintf("c-%d", len(k.requests))
	k.requests[id] = DiagnosisRequest{ID: id, Flow: flow, Time: at, Done: true, Diagnoses: found}
	return id
}

func (k *fake) DiagnosisRequest(_ context.Context, id string) (DiagnosisRequest, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.requests[id]
	if !ok {
		return c, fmt.Errorf("slow flow %q: %w", id, ErrNotFound)
	}
	if !c.Done {
		later := c
		later.Done, later.Diagnoses = true, k.batch.Diagnoses[:1]
		k.requests[id] = later
	}
	return c, nil
}

func (k *fake) DiagnosisRequests() (list []DiagnosisRequest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.requests) - 1; i >= 0; i-- {
		list = append(list, k.requests[fmt.Sprintf("c-%d", i)])
	}
	return list
}

func (k *fake) FaultKinds() []FaultKind {
	return []FaultKind{{Kind: "incast", Title: "Incast", Target: "host"}, {Kind: "blackhole", Title: "Blackhole", Target: "link"}, {Kind: "imbalance", Target: "fabric"}}
}

func (k *fake) Inject(_ context.Context, r FaultRequest) (Fault, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := Fault{ID: fmt.Sprintf("f-%d", len(k.faults)), Request: r, By: "user", State: "waiting", Begin: epoch0, Verdict: "pending", Want: r.Kind}
	k.faults = slices.Insert(k.faults, 0, f)
	return f, nil
}

func (k *fake) Faults() []Fault {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.faults)
}

func (k *fake) SetPace(_ context.Context, p float64) error {
	if p > 10 {
		return fmt.Errorf("pace %g, want at most 10 here: %w", p, ErrInvalid)
	}
	return nil
}
