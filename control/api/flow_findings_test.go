package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
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

// TestFlowFindingPages: the pages of any lists add up to them.
func TestFlowFindingPages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(0, 7)
		whole := FlowFindings{
			Paths: make([]PathFinding, size.Draw(rt, "paths")), Losses: make([]LinkLoss, size.Draw(rt, "losses")),
			Imbalances: make([]ECMPImbalance, size.Draw(rt, "imbalances")), Bursts: make([]MicroburstFinding, size.Draw(rt, "bursts")),
			PeriodicSenders: make([]PeriodicSender, size.Draw(rt, "senders")),
		}
		for i := range whole.Paths {
			whole.Paths[i].PassedFlows = i
		}
		for i := range whole.PeriodicSenders {
			whole.PeriodicSenders[i].Bursts = i
		}
		count := func(f *FlowFindings) int {
			return len(f.Paths) + len(f.Losses) + len(f.Imbalances) + len(f.Bursts) + len(f.PeriodicSenders)
		}
		limit := rapid.IntRange(1, 9).Draw(rt, "limit")
		var got FlowFindings
		for skip := 0; ; {
			page := whole
			next := page.page(skip, limit)
			if n := count(&page); n > limit || n < limit && next != 0 {
				rt.Fatalf("page after %d has %d findings, next %d; want %d", skip, n, next, limit)
			}
			got.Append(&page)
			if skip = next; next == 0 {
				break
			}
		}
		if count(&got) != count(&whole) || len(got.Losses) != len(whole.Losses) || len(got.Bursts) != len(whole.Bursts) {
			rt.Fatalf("pages have %d findings; want %d", count(&got), count(&whole))
		}
		for i := range got.Paths {
			if got.Paths[i].PassedFlows != i {
				rt.Fatalf("path findings in another order: %+v", got.Paths)
			}
		}
		for i := range got.PeriodicSenders {
			if got.PeriodicSenders[i].Bursts != i {
				rt.Fatalf("periodic senders in another order: %+v", got.PeriodicSenders)
			}
		}
	})
}

// manyFindings is a log with more findings than a page has.
type manyFindings int

func (n manyFindings) FlowFindings(time.Time, time.Time) (f FlowFindings) {
	for i := range n {
		f.Losses = append(f.Losses, LinkLoss{LostPackets: uint64(i), Pattern: "scattered"})
		f.Bursts = append(f.Bursts, MicroburstFinding{NewFlows: int(i)})
	}
	return f
}

// TestFlowFindingCursor: a page of the default size names the next, which has the
// same range although time has moved on.
func TestFlowFindingCursor(t *testing.T) {
	s, k := newServer(t, func(_ *Config, d *Deps) { d.FlowAnalyses = manyFindings(120) })
	after, pages := "", 0
	var all FlowFindings
	for {
		w := do(s.Handler(), "GET", Prefix+"/flow-findings?after="+after, "")
		var f FlowFindings
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || w.Code != 200 || !f.To.Equal(epoch0) {
			t.Fatalf("page %d = %d to %v, %v", pages, w.Code, f.To, err)
		}
		k.advance(time.Second)
		pages++
		if all.Append(&f); f.Next == "" {
			break
		}
		after = f.Next
	}
	if pages != 3 || len(all.Losses) != 120 || len(all.Bursts) != 120 {
		t.Errorf("%d pages with %d losses and %d bursts; want 3 with 120 each", pages, len(all.Losses), len(all.Bursts))
	}
}
