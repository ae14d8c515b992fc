package alerts

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// alertmanager starts a real Alertmanager on loopback, which sends what it notifies of
// to a webhook, and returns its address and the notifications.
func alertmanager(t *testing.T) (url string, notified chan string) {
	t.Helper()
	program, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		t.Fatal("no prometheus-alertmanager; install the Debian package (scripts/need does)")
	}
	notified = make(chan string, 16)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			Alerts []struct {
				Status              string
				Labels, Annotations map[string]string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		for _, a := range m.Alerts {
			text := a.Status + " " + a.Labels["cause"] + " at " + a.Labels["location"] + " of " + a.Labels["job"]
			if ranks := a.Annotations["ranks"]; ranks != "" {
				text += ", ranks " + ranks
			}
			notified <- text
		}
	}))
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	config := "route: {receiver: hook, group_by: [incident], group_wait: 10ms, group_interval: 50ms}\n" +
		"receivers: [{name: hook, webhook_configs: [{url: '" + hook.URL + "', send_resolved: true}]}]\n"
	if err := os.WriteFile(filepath.Join(dir, "am.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // Alertmanager takes no socket, only an address
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "am.yml"), "--storage.path="+dir,
		"--web.listen-address="+address, "--cluster.listen-address=", "--log.level=error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/-/ready"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return "http://" + address, notified
			}
		}
		if time.Now().After(end) {
			t.Fatal("Alertmanager is not ready after 2 min")
		}
	}
}

// TestAlertmanager: a real Alertmanager takes the alerts, has their labels, notifies of
// them, and of their end. Another one receives those of a job only.
func TestAlertmanager(t *testing.T) {
	url, notified := alertmanager(t)
	elsewhere, notifiedThere := alertmanager(t)
	cfg := DefaultConfig()
	cfg.Hold, cfg.Link, cfg.Targets = 0, "https://weft.example", []Target{{Kind: Alertmanager, URL: url}, {Kind: Alertmanager, URL: elsewhere, Jobs: []string{"search"}}}
	n, err := New(cfg, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() { defer close(stopped); _ = n.Run(ctx) }()
	defer func() { cancel(); <-stopped }()
	waitFor := func(notified chan string, want string) {
		t.Helper()
		select {
		case got := <-notified:
			if got != want {
				t.Fatalf("notified of %q; want %q", got, want)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("no notification; want %q; %+v", want, n.Stats())
		}
	}
	wait := func(want string) { t.Helper(); waitFor(notified, want) }
	n.Update(incident("i7"))
	wait("firing storm at h14 of training, ranks training: h3, h14")
	resp, err := http.Get(url + "/api/v2/alerts")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list []managed
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Labels["severity"] != "critical" || list[0].Labels["incident"] != "i7" || list[0].Annotations["confidence"] != "0.97" ||
		list[0].GeneratorURL != "https://weft.example/#/incidents/i7" {
		t.Errorf("Alertmanager has %+v", list)
	}
	n.Update(incident("i7", ended))
	wait("resolved storm at h14 of training, ranks training: h3, h14")
	n.Update(incident("i8", func(r *record.Incident) { r.Body = nil }))
	wait("firing storm at h14 of ")
	// The other Alertmanager, that of a job, has heard of none of them.
	n.Update(incident("i9", func(r *record.Incident) {
		r.Location, r.Body = "h2", json.RawMessage(`{"jobs":["search"],"job_ranks":[{"job":"search","hosts":["h2"]}]}`)
	}))
	waitFor(notifiedThere, "firing storm at h2 of search, ranks search: h2")
	wait("firing storm at h2 of search, ranks search: h2")
	for end := time.Now().Add(2 * time.Minute); account(t, n).Out != 4; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v; want 4 delivered", n.Stats())
		}
	}
}
