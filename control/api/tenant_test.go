package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// TestTenantMayOnlyReportSlowFlows: a tenant is refused every operation except
// those of slow flows, before any processing.
func TestTenantMayOnlyReportSlowFlows(t *testing.T) {
	s, k := newServer(t, withTokens)
	for _, c := range append(calls(k), call{"get-events", "GET", "/events", "", 200}) {
		w := do(s.Handler(), c.method, Prefix+c.path, c.body, "Authorization", "Bearer "+tenantToken)
		if slow := strings.Contains(c.path, "/slow-flows"); !slow && w.Code != 403 || slow && w.Code == 403 {
			t.Errorf("%s %s for a tenant = %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
	if w := do(s.Handler(), "GET", "/metrics", "", "Authorization", "Bearer "+tenantToken); w.Code != 403 {
		t.Errorf("/metrics for a tenant = %d; want 403", w.Code)
	}
}

// fixedDiagnoser is a Diagnoser that returns one given verdict.
type fixedDiagnoser struct {
	flow model.FlowKey
	d    record.Diagnosis
}

func (c *fixedDiagnoser) RequestDiagnosis(_ context.Context, flow model.FlowKey, _ time.Time) (string, error) {
	c.flow = flow
	return "c-1", nil
}

func (c *fixedDiagnoser) AddCompleted(model.FlowKey, time.Time, []record.Diagnosis) string {
	return "c-1"
}

func (c *fixedDiagnoser) DiagnosisRequest(context.Context, string) (DiagnosisRequest, error) {
	return DiagnosisRequest{ID: "c-1", Flow: c.flow, Time: epoch0, Done: true, Diagnoses: []record.Diagnosis{c.d}}, nil
}

func (c *fixedDiagnoser) DiagnosisRequests() []DiagnosisRequest {
	one, _ := c.DiagnosisRequest(context.Background(), "c-1")
	return []DiagnosisRequest{one}
}

var addresses = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+`)

// TestTenantSeesOnlyItsOwn: whatever a verdict contains, a tenant sees no flow
// without one of its own ends, no node, and no free text.
func TestTenantSeesOnlyItsOwn(t *testing.T) {
	diagnoser := &fixedDiagnoser{}
	s, k := newServer(t, withTokens, func(_ *Config, d *Deps) { d.Diagnoser = diagnoser })
	own := map[string]bool{"10.0.0.2": true, k.fabric.Node(k.fabric.Hosts()[1]).IPv4.String(): true}
	rapid.Check(t, func(rt *rapid.T) {
		s.access.Load().callers[1].diagnosisRequests.tokens = diagnosisRequestBurst
		addr := rapid.Custom(func(rt *rapid.T) netip.AddrPort {
			hosts := k.fabric.Hosts()
			i := rapid.IntRange(0, 3).Draw(rt, "host")
			return netip.AddrPortFrom(k.fabric.Node(hosts[i]).IPv4.Netip(), uint16(rapid.IntRange(1, 9).Draw(rt, "port")))
		})
		flow := rapid.Custom(func(rt *rapid.T) FlowRef {
			return FlowRef{
				Flow: model.NewFlowKey(addr.Draw(rt, "src"), addr.Draw(rt, "dst"), model.UDP), Src: "secret",
				Dst: "secret",
			}
		})
		body := DiagnosisBody{
			CauseDetail: "micro-burst", Remedy: "secret", Evidence: []string{"secret"},
			PFCPath: []PortRef{{Node: "secret"}}, DeadlockCycle: []PortRef{{Node: "secret"}},
			RoutingFault: &RoutingFault{Node: "secret"},
			Victims:      rapid.SliceOfN(flow, 0, 5).Draw(rt, "victims"), Spreaders: rapid.SliceOfN(flow, 0, 5).Draw(rt, "spreaders"),
			Graph: Graph{Ports: []GraphPort{{ID: "secret"}}},
		}
		for _, f := range rapid.SliceOfN(flow, 0, 5).Draw(rt, "culprits") {
			body.Culprits = append(body.Culprits, Participant{Flow: &f, Weight: .5, Text: "secret"})
		}
		if rapid.Bool().Draw(rt, "host") {
			body.Culprits = append(body.Culprits, Participant{Host: "secret"})
		}
		diagnoser.d = record.Diagnosis{
			ID: "secret", Anomaly: "backpressure", RootCause: "flows",
			Initial: record.Port{Node: "secret"}, Body: encode(body),
		}
		mine := flow.Draw(rt, "reported").Flow
		w := do(s.Handler(), "POST", Prefix+"/slow-flows", fmt.Sprintf(`{"flow":%q}`, mine), "Authorization",
			"Bearer "+tenantToken)
		ends := addresses.FindAllString(mine.String(), -1)
		if !own[ends[0]] && !own[ends[1]] {
			if w.Code != 403 {
				rt.Fatalf("flow %s of others = %d %s; want 403", mine, w.Code, w.Body)
			}
			diagnoser.flow = mine // as if another tenant had reported it
			if w := do(s.Handler(), "GET", Prefix+"/slow-flows/c-1", "", "Authorization", "Bearer "+tenantToken); w.Code != 404 {
				rt.Fatalf("another's report = %d %s; want 404", w.Code, w.Body)
			}
			if w := do(s.Handler(), "GET", Prefix+"/slow-flows", "", "Authorization",
				"Bearer "+tenantToken); strings.TrimSpace(w.Body.String()) != `{"items":[]}` {
				rt.Fatalf("reports with one of another = %d %s; want none", w.Code, w.Body)
			}
			return
		}
		if w.Code != 202 {
			rt.Fatalf("flow %s = %d %s; want 202", mine, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "secret") {
			rt.Fatalf("a tenant sees: %s", w.Body)
		}
		if all := do(s.Handler(), "GET", Prefix+"/slow-flows", "", "Authorization",
			"Bearer "+tenantToken); strings.TrimSpace(all.Body.String()) != `{"items":[`+strings.TrimSpace(w.Body.String())+`]}` {
			rt.Fatalf("a tenant's reports = %s; want only %s", all.Body, w.Body)
		}
		var v SlowFlow
		if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
			rt.Fatal(err)
		}
		shown := 0
		for _, line := range strings.Split(w.Body.String(), `"`) {
			if a := addresses.FindAllString(line, -1); len(a) == 2 {
				shown++
				if !own[a[0]] && !own[a[1]] {
					rt.Fatalf("a tenant sees %s", line)
				}
			}
		}
		// Conversely, all of its own flows are included.
		want := 1 // the reported flow
		for _, p := range body.Culprits {
			if p.Flow != nil && s.owns(s.access.Load().callers[1], p.Flow.Flow) {
				want++
			}
		}
		for _, f := range body.Victims {
			if s.owns(s.access.Load().callers[1], f.Flow) {
				want++
			}
		}
		if shown != want {
			rt.Fatalf("%d flows shown, want %d: %s", shown, want, w.Body)
		}
	})
}

// TestDiagnosisRequestsAreLimited: every request causes polls.
func TestDiagnosisRequestsAreLimited(t *testing.T) {
	s, k := newServer(t, withTokens)
	report := func(token string) int {
		return do(s.Handler(), "POST", Prefix+"/slow-flows", fmt.Sprintf(`{"flow":%q}`, k.flow(0)), "Authorization",
			"Bearer "+token).Code
	}
	taken := 0
	for range 3 * diagnosisRequestBurst {
		if report(tenantToken) == 202 {
			taken++
		}
	}
	if taken < diagnosisRequestBurst || taken > 2*diagnosisRequestBurst {
		t.Errorf("%d of %d reports at once were taken, want about %d", taken, 3*diagnosisRequestBurst, diagnosisRequestBurst)
	}
	if got := report(operatorToken); got != 202 {
		t.Errorf("another caller's report = %d; want 202", got)
	}
}

// TestTokenBucket: never more than burst + rate × time.
func TestTokenBucket(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := tokenBucket{tokens: diagnosisRequestBurst}
		now, taken := epoch0, 0
		for range rapid.IntRange(1, 200).Draw(rt, "takes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(rt, "ms")) * time.Millisecond)
			if b.allow(now) {
				taken++
			}
			if most := diagnosisRequestBurst + diagnosisRequestRate*now.Sub(epoch0).Seconds(); float64(taken) > most+1e-6 {
				rt.Fatalf("%d taken after %v, want at most %v", taken, now.Sub(epoch0), most)
			}
		}
	})
}
