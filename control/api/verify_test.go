package api

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeVerifier has its result at once, or when done is called.
type fakeVerifier struct {
	later bool
	done  func(Verification)
	err   error
}

func (f *fakeVerifier) VerifyIncident(_ context.Context, _ *IncidentDetail, done func(Verification)) (Verification, error) {
	if f.done = done; !f.later && f.err == nil {
		end := epoch0
		done(Verification{State: "done", Begin: epoch0, End: &end, Outcome: "recovered", Text: "8 of 8 probes arrived"})
	}
	return Verification{State: "running", Begin: epoch0, Text: "watches"}, f.err
}

// TestVerifyIncident: who asked and the result are kept, in the timeline and the audit
// log; the incident has the running verification and then its result.
func TestVerifyIncident(t *testing.T) {
	v, audit := &fakeVerifier{later: true}, filepath.Join(t.TempDir(), "audit.jsonl")
	s, _ := newServer(t, withTokens, func(c *Config, d *Deps) { c.AuditFile, d.Verifier = audit, v })
	verify := func(id, token string) int {
		return do(s.Handler(), "POST", Prefix+"/incidents/"+id+"/verify", "", "Authorization", "Bearer "+token).Code
	}
	detail := func() (d IncidentDetail) {
		t.Helper()
		w := do(s.Handler(), "GET", Prefix+"/incidents/inc-1", "", "Authorization", "Bearer "+operatorToken)
		if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		return d
	}
	if got := verify("inc-1", tenantToken); got != http.StatusForbidden {
		t.Errorf("a tenant's verification = %d; want 403", got)
	}
	if got := verify("inc-none", operatorToken); got != http.StatusNotFound {
		t.Errorf("verification of an unknown incident = %d; want 404", got)
	}
	if got := verify("inc-1", operatorToken); got != http.StatusCreated {
		t.Fatalf("verification = %d; want 201", got)
	}
	if d := detail(); d.Verification == nil || d.Verification.State != "running" || d.Verification.Who != "operator" {
		t.Errorf("verification %+v; want a running one of the operator", d.Verification)
	}
	end := epoch0.Add(time.Second)
	v.done(Verification{State: "done", Begin: epoch0, End: &end, Outcome: "persists", Text: "8 of 8 probes lost", SeenAs: "inc-2"})
	s.handlers.wait()
	d := detail()
	if d.Verification.State != "done" || d.Verification.Outcome != "persists" || d.Verification.Who != "operator" {
		t.Errorf("verification %+v; want the result", d.Verification)
	}
	if n := len(d.OperatorActions); n != 1 || d.OperatorActions[0].Kind != "verify" || d.OperatorActions[0].Who != "operator" {
		t.Fatalf("actions %+v; want the verification", d.OperatorActions)
	}
	if last := d.Timeline[len(d.Timeline)-1]; last.Text != "verified: persists: 8 of 8 probes lost (seen as inc-2)" || !last.Time.Equal(end) {
		t.Errorf("last of the timeline is %+v", last)
	}
	b, err := os.ReadFile(audit)
	if err != nil || !strings.Contains(string(b), `"path":"/api/v1/incidents/inc-1/verify"`) {
		t.Errorf("audit log %s, %v; want the request", b, err)
	}
	if w := do(s.Handler(), "POST", Prefix+"/incidents/inc-1/actions", `{"kind":"verify","text":"fine"}`, "Authorization", "Bearer "+operatorToken); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a result that someone claims = %d; want 422", w.Code)
	}
	v.err = ErrConflict
	if got := verify("inc-1", operatorToken); got != http.StatusConflict {
		t.Errorf("a verification that the controller refuses = %d; want 409", got)
	}
	s.handlers.wait() // the refused one has left nothing that runs
}

// wait waits until no handler runs.
func (h *runningHandlers) wait() {
	for {
		h.mu.Lock()
		n := h.n
		h.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
