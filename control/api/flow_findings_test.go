package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestFlowFindings: the response has the findings of the range, and the range; lists
// are never null.
func TestFlowFindings(t *testing.T) {
	s, k := newServer(t)
	for query, want := range map[string]int{
		"":         1,
		"?last=5s": 0,
		"?from=2026-01-02T15:03:55Z&to=2026-01-02T15:03:56Z": 1,
		"?from=2026-01-02T15:03:56Z&to=2026-01-02T15:03:57Z": 0,
	} {
		w := do(s.Handler(), "GET", Prefix+"/flow-findings"+query, "")
		var got FlowFindings
		if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != 200 || err != nil {
			t.Fatalf("GET %s = %d %s, %v", query, w.Code, w.Body, err)
		}
		if wide := k.FlowFindings(got.From, got.To); len(got.Paths) != want || len(wide.Paths) != want {
			t.Errorf("GET %s: %d path findings from %v to %v; want %d", query, len(got.Paths), got.From, got.To, want)
		}
		if strings.Contains(w.Body.String(), "null") {
			t.Errorf("GET %s has a list that is null: %s", query, w.Body)
		}
	}
	w := do(s.Handler(), "GET", Prefix+"/flow-findings", "")
	var got FlowFindings
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	f := got.Paths[0]
	if f.Kind != "loop" || f.At.Node != "tor1" || len(f.Flows) != 1 || f.Flows[0] != k.flow(1) ||
		f.Last.Sub(f.First) != time.Second {
		t.Errorf("finding %+v; want the loop of one flow", f)
	}
}
