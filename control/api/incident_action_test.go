package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/handling"
	"github.com/weft-telemetry/weft/model/record"
)

// actionStore keeps actions in memory.
type actionStore struct {
	mu   sync.Mutex
	list []record.IncidentAction
}

func (m *actionStore) AppendIncidentAction(_ context.Context, a record.IncidentAction) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, a)
	return nil
}

func (m *actionStore) IncidentActions(_ context.Context, incident string, _ int) (list []record.IncidentAction, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.list {
		if incident == "" || a.Incident == incident {
			list = append(list, a)
		}
	}
	return list, nil
}

func newBook(tb testing.TB) *handling.Book {
	b, err := handling.Open(context.Background(), &actionStore{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestIncidentActions: what operators do is shown with the incident, in lists, in its
// timeline and as an event, with who did it and when.
func TestIncidentActions(t *testing.T) {
	s, k := newServer(t, withTokens)
	_, before, _ := s.deps.Hub.stats()
	act := func(body string) (a IncidentAction) {
		t.Helper()
		w := do(s.Handler(), "POST", Prefix+"/incidents/inc-1/actions", body, "Authorization", "Bearer "+operatorToken)
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusCreated {
			t.Fatalf("%s = %d %s", body, w.Code, w.Body)
		}
		return a
	}
	if a := act(`{"kind":"ack"}`); a.Who != "operator" || !a.Time.Equal(k.Clock().Now) {
		t.Errorf("action %+v; want one of the operator at the fabric's time", a)
	}
	act(`{"kind":"assign","text":"alice"}`)
	act(`{"kind":"mute","for_ms":60000,"text":"being replaced"}`)
	act(`{"kind":"comment","text":"<b>not markup</b>"}`)
	if _, after, _ := s.deps.Hub.stats(); after != before+4 {
		t.Errorf("%d events; want one for each action", after-before)
	}

	var d IncidentDetail
	w := do(s.Handler(), "GET", Prefix+"/incidents/inc-1", "", "Authorization", "Bearer "+operatorToken)
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	h := d.Handling
	if h == nil || h.AckedBy != "operator" || h.Assignee != "alice" || h.MutedUntil == nil || !h.MutedUntil.Equal(k.Clock().Now.Add(time.Minute)) {
		t.Errorf("handling %+v", h)
	}
	var lines []string
	for _, e := range d.Timeline {
		if e.Kind == "operator" {
			lines = append(lines, e.Source+" "+e.Text)
		}
	}
	want := "operator acknowledged\noperator assigned it to alice\noperator muted alerts until 2026-01-02 15:05:05: being replaced\noperator <b>not markup</b>"
	if got := strings.Join(lines, "\n"); got != want || len(d.OperatorActions) != 4 {
		t.Errorf("timeline\n%s\nwant\n%s\nand 4 actions, got %d", got, want, len(d.OperatorActions))
	}
	var page Page[Incident]
	w = do(s.Handler(), "GET", Prefix+"/incidents", "", "Authorization", "Bearer "+operatorToken)
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	for _, i := range page.Items {
		if (i.Handling != nil) != (i.ID == "inc-1") {
			t.Errorf("%s has handling %+v", i.ID, i.Handling)
		}
	}
	for body, want := range map[string]string{
		`{"kind":"mute","until":"2020-01-01T00:00:00Z"}`:            "want a time in the future",
		`{"kind":"mute","for_ms":1,"until":"2027-01-01T00:00:00Z"}`: "want one of them",
		`{"kind":"mute","until":"2027-01-01T00:00:00Z"}`:            "at most 31 days",
		`{"kind":"ack","for_ms":1000}`:                              "only a mute",
		`{"kind":"comment"}`:                                        "comment without text",
		`{"kind":"close"}`:                                          "expected value to be one of",
	} {
		w := do(s.Handler(), "POST", Prefix+"/incidents/inc-1/actions", body, "Authorization", "Bearer "+operatorToken)
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s = %d %s; want 422 with %q", body, w.Code, w.Body, want)
		}
	}
	if w := do(s.Handler(), "POST", Prefix+"/incidents/inc-1/actions", `{"kind":"ack"}`, "Authorization", "Bearer "+tenantToken); w.Code != http.StatusForbidden {
		t.Errorf("a tenant's action = %d; want 403", w.Code)
	}
}
