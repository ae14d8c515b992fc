package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"testing"
)

// fakeVerdictProver proves at once, or when it is told what to answer.
type fakeVerdictProver struct {
	answers chan error // nil: at once; an answer without an error is a proof
	started chan struct{}
	outcome string
}

func (f *fakeVerdictProver) ProveVerdict(ctx context.Context, _ *ProofCase, progress func(int)) (Proof, error) {
	progress(3)
	if f.answers != nil {
		f.started <- struct{}{}
		select {
		case err := <-f.answers:
			if errors.Is(err, errPanic) {
				panic("an impossible record")
			}
			if err != nil {
				return Proof{}, err
			}
		case <-ctx.Done():
			return Proof{}, ctx.Err()
		}
	}
	return Proof{
		Outcome: f.outcome, Text: "late without it", Runs: 9, Diagnosis: "d1", Notes: []string{},
		Trials: []ProofTrial{{Name: "rebuilt", What: "as recorded", LateNs: 1000, Slowdown: 3}},
	}, nil
}

// errPanic has a fakeVerdictProver panic.
var errPanic = errors.New("panic")

// proofBed is a server that proves.
type proofBed struct {
	*testing.T
	s *Server
}

func (b *proofBed) prove(id, token string) int {
	return do(b.s.Handler(), "POST", Prefix+"/incidents/"+id+"/prove", "", "Authorization", "Bearer "+token).Code
}

func (b *proofBed) detail(id string) (d IncidentDetail) {
	b.Helper()
	w := do(b.s.Handler(), "GET", Prefix+"/incidents/"+id, "", "Authorization", "Bearer "+operatorToken)
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		b.Fatalf("%s: %v", w.Body, err)
	}
	return d
}

// TestProveIncident: one proof runs at a time, for operators; its progress and result are
// the incident's, and its outcome is kept and taken into the confidence.
func TestProveIncident(t *testing.T) {
	p := &fakeVerdictProver{answers: make(chan error), started: make(chan struct{}), outcome: "refuted"}
	s, _ := newServer(t, withTokens, func(_ *Config, d *Deps) { d.VerdictProver = p })
	b := proofBed{t, s}
	if got := b.prove("inc-1", tenantToken); got != http.StatusForbidden {
		t.Errorf("a tenant's proof = %d; want 403", got)
	}
	if got := b.prove("inc-none", operatorToken); got != http.StatusNotFound {
		t.Errorf("proof of an unknown incident = %d; want 404", got)
	}
	before := b.detail("inc-1").Confidence
	if got := b.prove("inc-1", operatorToken); got != http.StatusCreated {
		t.Fatalf("proof = %d; want 201", got)
	}
	<-p.started
	if d := b.detail("inc-1"); d.Proof == nil || d.Proof.State != "running" || d.Proof.Who != "operator" || d.Proof.Runs != 3 {
		t.Errorf("proof %+v; want a running one of the operator after 3 simulations", d.Proof)
	}
	if got := b.prove("inc-1", operatorToken); got != http.StatusConflict {
		t.Errorf("the same proof again = %d; want 409", got)
	}
	if got := b.prove("inc-0", operatorToken); got != http.StatusServiceUnavailable && got != http.StatusTooManyRequests {
		t.Errorf("a second proof = %d; want it refused for now", got)
	}
	p.answers <- nil
	s.handlers.wait()
	d := b.detail("inc-1")
	if d.Proof.State != "done" || d.Proof.Outcome != "refuted" || d.Proof.End == nil || d.Proof.Runs != 9 || len(d.Proof.Trials) != 1 {
		t.Errorf("proof %+v; want the result", d.Proof)
	}
	if d.Handling == nil || d.Handling.Proof != "refuted" || len(d.OperatorActions) != 1 || d.OperatorActions[0].Kind != "prove" {
		t.Errorf("handling %+v, actions %+v; want the proof kept", d.Handling, d.OperatorActions)
	}
	if last := d.Timeline[len(d.Timeline)-1]; last.Text != "tested by experiment: refuted: late without it" {
		t.Errorf("last of the timeline is %+v", last)
	}
	if d.Confidence >= before/2 {
		t.Errorf("confidence %.2f, before the verdict was refuted %.2f; want far less", d.Confidence, before)
	}

	// Another may run now; one that fails says why, and leaves the outcome.
	if got := b.prove("inc-1", operatorToken); got != http.StatusCreated {
		t.Fatalf("proof = %d; want 201", got)
	}
	<-p.started
	p.answers <- errors.New("the records do not suffice")
	s.handlers.wait()
	if d := b.detail("inc-1"); d.Proof.Outcome != "failed" || d.Proof.Text != "the records do not suffice" || d.Handling.Proof != "refuted" {
		t.Errorf("proof %+v, handling %+v; want why it failed, and the outcome before it", d.Proof, d.Handling)
	}

	// A simulation that panics is a failed proof.
	if got := b.prove("inc-1", operatorToken); got != http.StatusCreated {
		t.Fatalf("proof = %d; want 201", got)
	}
	<-p.started
	p.answers <- errPanic
	s.handlers.wait()
	if d := b.detail("inc-1"); d.Proof.Outcome != "failed" || d.Proof.State != "done" {
		t.Errorf("proof %+v after a panic; want a failed one", d.Proof)
	}

	// It ends with the service, and leaves nothing.
	if got := b.prove("inc-1", operatorToken); got != http.StatusCreated {
		t.Fatalf("proof = %d; want 201", got)
	}
	<-p.started
	s.end()
	s.handlers.wait()
	if d := b.detail("inc-1"); len(d.OperatorActions) != 3 {
		t.Errorf("actions %+v; want none of a proof that was cancelled", d.OperatorActions)
	}
}

func TestWithProof(t *testing.T) {
	for _, tc := range []struct {
		before         float64
		cause, outcome string
		want           float64
	}{
		{0.5, "storm", "proven", 31.0 / 32},
		{0.5, "storm", "refuted", 1.0 / 32},
		{0.8, "storm", "partly proven", 0.8},
		{0.8, "storm", "", 0.8},
		{0.8, "storm", "not shown", 0.8},
		{1, "incast", "refuted", 99.0 / 130},
		{0, "slow-receiver", "proven", 31.0 / 130},
		{0.8, "contention", "proven", 124.0 / 125},
		{0.5, "blackhole", "proven", 2.0 / 3},
		{0.8, "deadlock", "proven", 8.0 / 9},
		{0.5, "loop", "refuted", 1.0 / 32},
		{0.8, "imbalance", "not shown", 0.8},
	} {
		if got := withProof(tc.before, tc.cause, tc.outcome); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("withProof(%v, %q, %q) = %v; want %v", tc.before, tc.cause, tc.outcome, got, tc.want)
		}
	}
}
