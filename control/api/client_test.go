package api_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/model"
)

const token = "a-token-of-the-operator"

// dial serves a fake controller and returns a client of it.
func dial(t *testing.T, token, sent string) (*client.Client, *api.Server) {
	t.Helper()
	s := api.NewTestServer(t, token)
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	addr := api.ServeTest(t, s)
	c, err := client.New("http://"+addr+"/", sent, &http.Client{Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// TestClientCallsEverything: every method returns a non-empty result, and no field
// of a response is lost.
func TestClientCallsEverything(t *testing.T) {
	c, _ := dial(t, token, token)
	ctx := t.Context()
	last := api.Range{Last: "3m"}
	key, err := model.ParseFlowKey("udp 10.0.0.3:4001 > 10.1.1.2:4006")
	if err != nil {
		t.Fatal(err)
	}
	probe, err := c.StartProbe(ctx, api.ProbeRequest{Kind: "flow", Flow: key, Count: 3})
	if err != nil || probe.Request.Flow != key || probe.Request.Count != 3 || probe.Request.IntervalUs != 100 {
		t.Errorf("StartProbe = %+v, %v", probe, err)
	}
	mark, err := c.SetMark(ctx, api.MarkRequest{Flow: key})
	if err != nil || mark.Request.Flow != key {
		t.Errorf("SetMark = %+v, %v", mark, err)
	}
	slow, err := c.ReportSlowFlow(ctx, api.SlowFlowReport{Flow: key}, time.Second)
	if err != nil || slow.State != "done" || len(slow.Verdicts) != 1 || slow.Verdicts[0].Role != "culprit" {
		t.Errorf("ReportSlowFlow = %+v, %v", slow, err)
	}
	for name, ask := range map[string]func() (any, error){
		"Topology":    func() (any, error) { return c.Topology(ctx) },
		"State":       func() (any, error) { return c.State(ctx, time.Time{}) },
		"PodTopology": func() (any, error) { return c.PodTopology(ctx, 0, 1) },
		"Overview":    func() (any, error) { return c.Overview(ctx) },
		"past State":  func() (any, error) { return c.State(ctx, api.TestNow) },
		"Clock":       func() (any, error) { return c.Clock(ctx) },
		"SetPace":     func() (any, error) { return c.SetPace(ctx, .5) },
		"Health":      func() (any, error) { return c.Health(ctx) },
		"Incidents":   func() (any, error) { return c.Incidents(ctx, api.IncidentsQuery{Range: last, State: "open"}) },
		"Incident":    func() (any, error) { return c.Incident(ctx, "inc-1") },
		"ActOnIncident": func() (any, error) {
			return c.ActOnIncident(ctx, "inc-1", api.IncidentActionRequest{Kind: "ack"})
		},
		"Diagnoses":      func() (any, error) { return c.Diagnoses(ctx, api.DiagnosesQuery{Range: last}) },
		"Diagnosis":      func() (any, error) { return c.Diagnosis(ctx, "d-0") },
		"Drawing":        func() (any, error) { return c.DiagnosisDrawing(ctx, "d-0", "svg") },
		"Flows":          func() (any, error) { return c.Flows(ctx, api.FlowsQuery{Range: last, Filter: "udp", Sort: "lost"}) },
		"Flow":           func() (any, error) { return c.Flow(ctx, key, last) },
		"FlowFindings":   func() (any, error) { return c.AllFlowFindings(ctx, last) },
		"Traces":         func() (any, error) { return c.Traces(ctx, api.TracesQuery{Range: last, Flow: key.String()}) },
		"Trace":          func() (any, error) { return c.Trace(ctx, "2") },
		"Capture":        func() (any, error) { return c.TracePcapng(ctx, "2") },
		"Port":           func() (any, error) { return c.Port(ctx, "tor0", 1, last, time.Second) },
		"Heatmap":        func() (any, error) { return c.Heatmap(ctx, api.HeatmapQuery{Range: last, Steps: 3}) },
		"Counters":       func() (any, error) { return c.Counters(ctx) },
		"Counter":        func() (any, error) { return c.Counter(ctx, "tcp-syn", last, 0) },
		"AddCounter":     func() (any, error) { return c.AddCounter(ctx, api.CounterRequest{Name: "x", Filter: "tcp"}) },
		"Probes":         func() (any, error) { return c.Probes(ctx) },
		"Probe":          func() (any, error) { return c.Probe(ctx, probe.ID) },
		"Marks":          func() (any, error) { return c.Marks(ctx) },
		"FaultKinds":     func() (any, error) { return c.FaultKinds(ctx) },
		"Inject":         func() (any, error) { return c.InjectFault(ctx, api.FaultRequest{Kind: "imbalance"}) },
		"SlowFlows":      func() (any, error) { return c.SlowFlows(ctx) },
		"SlowFlow":       func() (any, error) { return c.SlowFlow(ctx, slow.ID) },
		"CompleteFilter": func() (any, error) { return c.CompleteFilter(ctx, "traces", "hop.s", -1) },
	} {
		v, err := ask()
		if err != nil || reflect.ValueOf(v).IsZero() {
			t.Errorf("%s = %+v, %v", name, v, err)
		}
	}
	if f, err := c.Faults(ctx); err != nil || len(f) != 1 {
		t.Errorf("Faults = %v, %v", f, err)
	}
	if err := c.RemoveMark(ctx, mark.ID); err != nil {
		t.Error(err)
	}
	if err := c.RemoveCounter(ctx, "x"); err != nil {
		t.Error(err)
	}
}

// TestClientPages reads a whole list page by page.
func TestClientPages(t *testing.T) {
	c, _ := dial(t, "", "")
	seen := map[string]bool{}
	for tr, err := range client.All(func(after string) (api.Page[api.TraceSummary], error) {
		return c.Traces(t.Context(), api.TracesQuery{Paging: api.Paging{Limit: 7, After: after}})
	}) {
		if err != nil || seen[tr.ID] {
			t.Fatalf("trace %s twice, or %v", tr.ID, err)
		}
		seen[tr.ID] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d traces, want 200", len(seen))
	}
	for _, err := range client.All(func(string) (api.Page[api.TraceSummary], error) {
		return c.Traces(t.Context(), api.TracesQuery{Filter: "nonsense"})
	}) {
		if !errors.Is(err, api.ErrInvalid) {
			t.Errorf("a wrong filter: %v", err)
		}
	}
}

// TestClientErrors: errors are those of package api, with the text of the server.
func TestClientErrors(t *testing.T) {
	c, _ := dial(t, token, token)
	ctx := t.Context()
	_, missing := c.Incident(ctx, "../../etc")
	_, wrong := c.Flows(ctx, api.FlowsQuery{Filter: "ip.scr == h0"})
	_, bad := c.SetPace(ctx, -1)
	_, twice := c.AddCounter(ctx, api.CounterRequest{Name: "tcp-syn", Filter: "tcp"})
	for _, tc := range []struct {
		err  error
		is   error
		says string
	}{
		{missing, api.ErrNotFound, `incident "../../etc": not found (404)`},
		{wrong, api.ErrInvalid, `unknown field "ip.scr", want ip.src`},
		{bad, api.ErrInvalid, "body.pace"},
		{twice, api.ErrConflict, "exists already"},
	} {
		if !errors.Is(tc.err, tc.is) || !strings.Contains(tc.err.Error(), tc.says) {
			t.Errorf("error %v; want %v saying %q", tc.err, tc.is, tc.says)
		}
	}
	stranger, _ := dial(t, token, "not-the-operators-token")
	var p *client.Problem
	if _, err := stranger.Health(ctx); !errors.As(err, &p) || p.Status != 401 {
		t.Errorf("a wrong token: %v", err)
	}
	for _, err := range stranger.Events(ctx) {
		if !errors.As(err, &p) || p.Status != 401 {
			t.Errorf("events with a wrong token: %v", err)
		}
	}
}

// TestClientAsksForChanges: a topology that has not changed is not sent again, and a
// state is updated by what has changed.
func TestClientAsksForChanges(t *testing.T) {
	s := api.NewTestServer(t, "")
	asked := &recordingTransport{}
	t.Cleanup(asked.CloseIdleConnections)
	c, err := client.New("http://"+api.ServeTest(t, s), "", &http.Client{Transport: asked})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	first, err := c.Topology(ctx)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Topology(ctx)
	if err != nil || !reflect.DeepEqual(first, again) || !slices.Equal(asked.statuses, []int{200, 304}) {
		t.Errorf("Topology twice: %v, statuses %v; want one 304 and the same topology", err, asked.statuses)
	}
	for _, pods := range [][]int{nil, {1, -1}} {
		var st api.State
		for range 3 {
			if err := c.UpdateState(ctx, &st, pods...); err != nil || len(st.Ports) == 0 || st.Snapshot == "" {
				t.Fatalf("UpdateState of pods %v: %d ports of %q, %v", pods, len(st.Ports), st.Snapshot, err)
			}
		}
		if !strings.Contains(asked.last, "since="+st.Snapshot) {
			t.Errorf("the last request was %s; want changes since %s", asked.last, st.Snapshot)
		}
	}
	if asked.plain > 0 {
		t.Errorf("%d large answers were not compressed", asked.plain)
	}
}

// recordingTransport records what was asked and answered.
type recordingTransport struct {
	http.Transport
	statuses []int
	plain    int // answers that the transport did not decompress
	last     string
}

func (r *recordingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.Transport.RoundTrip(req)
	if err == nil {
		r.statuses, r.last = append(r.statuses, resp.StatusCode), req.URL.String()
		if !resp.Uncompressed && resp.ContentLength > 2000 {
			r.plain++
		}
	}
	return resp, err
}

// TestClientEvents: events arrive in order.
func TestClientEvents(t *testing.T) {
	c, s := dial(t, token, token)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := 0
	for e, err := range c.Events(ctx, "state", "fault") {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case api.StateEvent:
			if !e.Full {
				t.Error("the first state is not full")
			}
			for _, id := range []string{"a", "b", "c"} {
				s.Hub().Publish(api.Fault{ID: id})
			}
		case api.Fault:
			if e.ID != string(rune('a'+n)) {
				t.Errorf("fault %d is %s", n, e.ID)
			}
			n++
		}
		if n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d of 3 events", n)
	}
}
