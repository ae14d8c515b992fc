package serve

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/alerts"
)

func TestJobsAreReadDumpedAndChanged(t *testing.T) {
	cfg := testConfig(t)
	text := "topology: " + cfg.Topology + "\njobs:\n  - {name: blue, hosts: [h0, h1]}\n  - {name: green, hosts: h2, prefixes: [10.9.0.0/16, \"fd00::/8\"]}\n"
	read := DefaultConfig()
	if err := parse("serve.yaml", []byte(text), &read, map[string]int{}); err != nil {
		t.Fatal(err)
	}
	if len(read.Jobs) != 2 || len(read.Jobs[0].Hosts) != 2 || len(read.Jobs[1].Prefixes) != 2 {
		t.Fatalf("read %+v, want blue with two hosts and green with two prefixes", read.Jobs)
	}
	var b strings.Builder
	if err := read.Dump(&b); err != nil {
		t.Fatal(err)
	}
	again := DefaultConfig()
	if err := parse("dump.yaml", []byte(b.String()), &again, map[string]int{}); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if !reflect.DeepEqual(again.Jobs, read.Jobs) {
		t.Errorf("dumped and read again: %+v, want %+v", again.Jobs, read.Jobs)
	}

	s := start(t, cfg)
	cfg.Jobs = read.Jobs
	if restart, err := s.Reload(t.Context(), cfg); err != nil || len(restart) > 0 {
		t.Errorf("reload of jobs: %v, restart for %v; want neither", err, restart)
	}
	cfg.Alerts.Targets = []alerts.Target{{Kind: alerts.Webhook, URL: "http://127.0.0.1:1/", Jobs: []string{"blue", "bleu"}}}
	if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), `alerts.targets: job "bleu" of target 1 is not in jobs`) {
		t.Errorf("alerts of an unknown job: %v, want an error that names it", err)
	}
	cfg.Alerts.Targets[0].Jobs = []string{"blue"}
	if err := cfg.Check(); err != nil {
		t.Errorf("alerts of a job: %v", err)
	}
	cfg.Alerts.Targets = nil
	cfg.Jobs = []control.Job{{Name: "red", Hosts: []string{"h77"}}}
	if _, err := s.Reload(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "h77") {
		t.Errorf("reload of a job on a host that is not there: %v, want an error that names it", err)
	}
}
