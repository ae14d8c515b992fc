package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/console"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/browsertest"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/scenario/live/livetest"
)

// twoJobs is a run of an all-to-all that crosses a link which loses packets, and a ring with
// a rank that computes for longer than the others.
const twoJobs = `
name: jobs
seed: 3
duration: 1800ms
topology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}
fabric: {mtu: 4000, buffer: 2MB, ecn: [{kmin: 40KB, kmax: 160KB, pmax: 20%}]}
telemetry:
  - {kind: flowset, slot: 10ms, flows: 1000, ipv6: false}
  - {kind: port-state, period: 2ms}
traffic:
  - {kind: all-to-all, name: experts, hosts: [h0, h4, h8, h12, h1], bytes: 2MB, iterations: 40, compute: 60ms}
  - {kind: all-reduce, name: dense, hosts: [h2, h6, h10, h14], bytes: 2MB, iterations: 40, compute: 60ms, start: 13ms}
faults:
  - {kind: corruption, port: tor0>leaf0, share: 4%, at: 200ms}
  - {kind: straggler, host: h6, factor: 1.8}
`

// TestJobsInBrowser opens the jobs of a run that has ended with Chromium: the list and its
// verdicts, the delay matrix by keyboard, the way from a cell to the flow, the path and the
// incident, the time of the URL everywhere, a phone, and accessibility.
func TestJobsInBrowser(t *testing.T) {
	browsertest.Need(t, "web")
	t.Parallel()
	s, err := scenario.Parse("jobs.yaml", []byte(twoJobs))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	from, to := began.Format(time.RFC3339), began.Add(s.Duration).Format(time.RFC3339Nano)
	o := live.Options{Config: live.DefaultConfig(), Scenario: s, Console: console.Files(), Pace: 1000, Began: began, Store: filepath.Join(t.TempDir(), "weft.duckdb")}
	livetest.Run(t, o, func(ctx context.Context, base string) {
		awaitVerdicts(ctx, t, base, url.Values{"from": {from}, "to": {to}})
		browsertest.Run(ctx, t, "web", "test/jobs.mjs", base, from, to)
	})
}

// awaitVerdicts waits until the store has the whole run: both jobs with what slows them, and
// the incident of the link.
func awaitVerdicts(ctx context.Context, t *testing.T, base string, at url.Values) {
	t.Helper()
	for {
		var l api.JobList
		var incidents api.Page[api.Incident]
		ask(ctx, t, base+"api/v1/jobs?"+at.Encode(), &l)
		ask(ctx, t, base+"api/v1/incidents?"+at.Encode(), &incidents)
		causes := map[string]bool{}
		for i := range l.Items {
			causes[l.Items[i].Findings[0].Cause] = true
		}
		if len(l.Items) == 2 && causes["link"] && causes["compute"] && len(incidents.Items) > 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the jobs of the run have not come: %+v, incidents %+v", l, incidents)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func ask(ctx context.Context, t *testing.T, address string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, resp.Status, err)
	}
}
