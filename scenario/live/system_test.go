package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
)

// TestSystemServes runs the demo as a user does: traffic, a fault by the API, an
// incident in the API, and everything in the file afterwards.
func TestSystemServes(t *testing.T) {
	cfg := small(1)
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	s, err := NewSystem(Options{Config: cfg, Pace: 1000, Store: path, AnswerTime: answerTime, Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + s.Addr().String() + api.Prefix
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	get := func(route string, into any) error {
		r, err := http.Get(base + route)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s: %s", route, r.Status, b)
		}
		return json.Unmarshal(b, into)
	}
	// wait asks until the answer is good; the fabric goes as fast as it can.
	wait := func(what, route string, into any, good func() bool) {
		t.Helper()
		var err error
		for end := time.Now().Add(8 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if err = get(route, into); err == nil && good() {
				return
			}
		}
		t.Fatalf("no %s: last error %v", what, err)
	}
	var flows api.Page[json.RawMessage]
	wait("flows", "/flows", &flows, func() bool { return len(flows.Items) > 0 })
	var state api.State
	wait("state", "/state", &state, func() bool { return len(state.Ports) > 0 })

	body, _ := json.Marshal(api.FaultRequest{Kind: "loop", Node: "leaf0"})
	r, err := http.Post(base+"/faults", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode >= 300 {
		t.Fatalf("fault: %s", r.Status)
	}
	var faults api.Page[api.Fault]
	wait("right verdict", "/faults", &faults, func() bool { return len(faults.Items) > 0 && faults.Items[0].Verdict == "right" })
	var incidents api.Page[api.Incident]
	wait("incident", "/incidents?cause=loop", &incidents, func() bool { return len(incidents.Items) > 0 })
	var one api.IncidentDetail
	if err := get("/incidents/"+incidents.Items[0].ID, &one); err != nil {
		t.Fatal(err)
	}
	if one.Sentence == "" || len(one.Timeline) == 0 || len(one.Evidence) == 0 || one.Remedy == "" {
		t.Errorf("incident %+v; want a sentence, a timeline, evidence and a remedy", one)
	}
	var health api.Health
	if err := get("/health", &health); err != nil || len(health.Stages) < 6 {
		t.Errorf("health %+v, %v; want every stage", health, err)
	}

	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	st, err := embedded.Open(path, embedded.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	kept, err := st.Incidents(context.Background(), record.Query{Name: incidents.Items[0].ID})
	if err != nil || len(kept.Items) != 1 {
		t.Errorf("%d incidents kept, %v; want the one that was shown", len(kept.Items), err)
	}
}
