package core

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/alerts"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model/record"
)

// TestAlertsAreInHealth: what the controller finds reaches a target, and health has what
// was sent, what was refused and why.
func TestAlertsAreInHealth(t *testing.T) {
	got := make(chan string, 4)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer hook.Close()
	cfg := alerts.DefaultConfig()
	cfg.Targets = []alerts.Target{{Kind: alerts.Webhook, URL: hook.URL + "/secret-path", Token: "hook-token"}}
	n, err := alerts.New(cfg, alerts.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	c := &Core{deps: Deps{Alerts: n}, hub: api.NewEventHub(1, 1)}
	c.addRecords(&record.Batch{Incidents: []record.Incident{{ID: "i1", Begin: time.Now(), Severity: "critical", Cause: "loop"}}})
	go func() { _ = n.Run(t.Context()) }()
	if token := <-got; token != "Bearer hook-token" {
		t.Errorf("the target got %q; want its token", token)
	}
	st := alertStage(n)
	for end := time.Now().Add(time.Minute); st.Losses[1].Count == 0 && time.Now().Before(end); st = alertStage(n) {
		time.Sleep(time.Millisecond)
	}
	if st.In != 1 || st.Out != 0 || st.Losses[1].Count != 1 || st.Losses[1].Reason != "rejected" || st.QueueLimit != cfg.Queue {
		t.Errorf("stage %+v; want one alert that was rejected", st)
	}
	h := api.Health{State: "ok"}
	addAlertProblems(&h, n)
	if text := strings.Join(h.Alerts, "\n"); h.State != "degraded" || !strings.Contains(text, "403") || strings.Contains(text, "secret") {
		t.Errorf("health is %s with %q; want degraded, the status, and no path", h.State, text)
	}
}
