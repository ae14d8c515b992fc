package live

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario"
)

// TestAnswersFollowTheRun: equal requests after parts of the run have answers of their own,
// however soon one follows the other.
func TestAnswersFollowTheRun(t *testing.T) {
	s, err := scenario.Parse("test.yaml", []byte(`seed: 1
duration: 20ms
topology: {generate: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2}}
traffic:
  - {kind: persistent, pairs: [h0>h2], rate: 1Gb/s}
telemetry:
  - {kind: flowset, slot: 500us, flows: 100, ipv6: off}
`))
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, s, StartOptions{})
	last := uint64(0)
	for at := 10 * time.Millisecond; at < r.Duration(); at += time.Millisecond {
		if err := r.RunUntil(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		page, err := r.Client().Flows(t.Context(), api.FlowsQuery{Range: api.Range{From: r.Start()}})
		if err != nil {
			t.Fatal(err)
		}
		if page.Totals.Packets <= last {
			t.Errorf("%d packets after %v, %d a millisecond before; want more", page.Totals.Packets, at, last)
		}
		last = page.Totals.Packets
	}
}

// TestAnswersHaveTime: a busy machine neither shortens an answer nor refuses it.
func TestAnswersHaveTime(t *testing.T) {
	if c := apiConfig(); c.RequestTimeout < time.Hour || api.CheckConfig(c) != nil {
		t.Errorf("a request may take %v (%v); want no limit that a busy machine reaches", c.RequestTimeout, api.CheckConfig(c))
	}
	if c := storeConfig(); c.QueryTime < time.Hour {
		t.Errorf("a query may take %v; want no limit that a busy machine reaches", c.QueryTime)
	}
}

// TestSystemHasTime: AnswerTime is the limit of a system's answers: without time it refuses.
func TestSystemHasTime(t *testing.T) {
	for limit, want := range map[time.Duration]int{time.Nanosecond: http.StatusServiceUnavailable, time.Hour: http.StatusOK} {
		s, err := NewSystem(Options{
			Config: small(1), Pace: 1, AnswerTime: limit, Store: filepath.Join(t.TempDir(), "weft.duckdb"), Listen: "127.0.0.1:0",
		})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://"+s.Addr().String()+api.Prefix+"/flows", nil)
		if s.core.Handler().ServeHTTP(w, r); w.Code != want {
			t.Errorf("with %v for an answer: %d %s; want %d", limit, w.Code, w.Body, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
