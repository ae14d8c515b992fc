// Package past_test tests that the console shows the past as it was.
package past_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/console"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/browsertest"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/scenario/live/livetest"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

// web is the folder of the console's scripts.
const web = "../web"

// TestPastInBrowser: closed incidents of every kind are drawn at their own time in all
// sizes and themes, with their culprit red, and the same URLs show the same pictures an
// hour of the fabric later. Another fault is active
// both times. WEFT_SHOTS keeps the pictures in a folder.
func TestPastInBrowser(t *testing.T) {
	browsertest.Need(t, web)
	folder := t.TempDir()
	if shots := os.Getenv("WEFT_SHOTS"); shots != "" {
		folder = shots
	}
	urls := filepath.Join(t.TempDir(), "urls.json")
	began := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	o := live.Options{Config: live.DefaultConfig(), Console: console.Files(), Store: filepath.Join(t.TempDir(), "weft.duckdb")}
	for i, rate := range []model.Rate{model.Gbps, 40 * model.Gbps} {
		o.Rate, o.Pace, o.Began = rate, 1000, began.Add(time.Duration(i)*10*time.Second)
		livetest.Run(t, o, func(ctx context.Context, url string) {
			for _, kind := range faultKinds(ctx, t, url) {
				if (kind.Kind == "incast") == (rate == congestible) {
					injectAndWait(ctx, t, url, kind)
				}
			}
		})
	}
	o.Rate, o.Pace = model.Gbps, slow
	for _, later := range []time.Duration{time.Minute, time.Hour} {
		if t.Failed() {
			return
		}
		o.Began = began.Add(later)
		livetest.Run(t, o, func(ctx context.Context, url string) { takePictures(ctx, t, url, urls, folder) })
	}
}

// congestible is a rate at which an incast pauses ports for long enough to be more than a
// notice. Simulations of slower links take less time.
const congestible = 40 * model.Gbps

// slow is a pace at which the browser has most of the CPU.
const slow = 0.02

// takePictures injects a black hole, which is no part of the pictures, and takes them,
// or compares them with those that were taken.
func takePictures(ctx context.Context, t *testing.T, url, urls, folder string) {
	t.Helper()
	var f api.Fault
	call(ctx, t, url, http.MethodPost, "/faults", api.FaultRequest{Kind: "blackhole", Node: "leaf6", DurationMs: 60000}, &f)
	browsertest.Run(ctx, t, web, "test/past.mjs", url, urls, folder)
}

// faultKinds returns a request of every kind of fault.
func faultKinds(ctx context.Context, t *testing.T, url string) (out []api.FaultRequest) {
	t.Helper()
	var kinds api.Page[api.FaultKind]
	call(ctx, t, url, http.MethodGet, "/faults/kinds", nil, &kinds)
	targets := map[string]api.FaultRequest{"host": {Node: "h4"}, "switch": {Node: "leaf1"}, "link": {Node: "tor6", Port: 3}, "fabric": {}}
	for _, k := range kinds.Items {
		r := targets[k.Target]
		r.Kind = k.Kind
		out = append(out, r)
	}
	return out
}

// injectAndWait injects a fault, and waits until it was found and its incident is closed.
func injectAndWait(ctx context.Context, t *testing.T, url string, r api.FaultRequest) {
	t.Helper()
	var f api.Fault
	call(ctx, t, url, http.MethodPost, "/faults", r, &f)
	for f.Verdict == "pending" {
		time.Sleep(20 * time.Millisecond)
		var all api.Page[api.Fault]
		call(ctx, t, url, http.MethodGet, "/faults", nil, &all)
		for _, x := range all.Items {
			if x.ID == f.ID {
				f = x
			}
		}
	}
	if f.Verdict != "right" {
		t.Fatalf("fault %+v was not found", f)
	}
	for {
		var in api.IncidentDetail
		call(ctx, t, url, http.MethodGet, "/incidents/"+f.Incident, nil, &in)
		if in.State == "closed" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// call calls the API of a demo.
func call(ctx context.Context, t *testing.T, url, method, route string, body, into any) {
	t.Helper()
	var content io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url+"api/v1"+route, content)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s %v", method, route, resp.Status, b, err)
	} else if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", route, err))
	}
}
