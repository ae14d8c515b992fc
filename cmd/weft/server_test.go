package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// queryRunner runs command lines against a controller.
type queryRunner struct {
	t   *testing.T
	url string
}

// weft runs a command line that must exit with a code, and returns its output.
func (k *queryRunner) weft(code int, args ...string) string {
	k.t.Helper()
	var out, errs bytes.Buffer
	a := &app{}
	if got := a.run(append(args, "--server", k.url), &out, &errs); got != code {
		k.t.Fatalf("weft %q exits with %d; want %d\n%s%s", args, got, code, &out, &errs)
	}
	return out.String() + errs.String()
}

// says runs a command line until its output matches.
func (k *queryRunner) says(want string, args ...string) string {
	k.t.Helper()
	var out, errs bytes.Buffer
	for end := time.Now().Add(8 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		out.Reset()
		errs.Reset()
		(&app{}).run(append(args, "--server", k.url), &out, &errs)
		if regexp.MustCompile("(?m)" + want).MatchString(out.String()) {
			return out.String()
		}
	}
	k.t.Fatalf("weft %q says\n%s%s\nwant %q", args, &out, &errs, want)
	return ""
}

// asJSON runs a command line and decodes its output.
func asJSON[T any](k *queryRunner, args ...string) (v T) {
	k.t.Helper()
	text := k.weft(0, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		k.t.Fatalf("weft %q says %s: %v", args, text, err)
	}
	return v
}

// TestQueryCommands runs every query command against a controller whose simulated
// fabric lacks a route.
func TestQueryCommands(t *testing.T) {
	cfg := live.DefaultConfig()
	cfg.Rate, cfg.Load = 10*model.Gbps, 0.03
	s, err := live.NewSystem(live.Options{
		Config: cfg, Pace: 1000, Store: filepath.Join(t.TempDir(),
			"weft.duckdb"), AnswerTime: time.Hour, Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	k := &queryRunner{t, "http://" + s.Addr().String()}
	k.says(`^udp .*tor\d > `, "flows", "--last", "1m")
	c, err := client.New(k.url, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.InjectFault(ctx, api.FaultRequest{Kind: "blackhole", Node: "leaf0"}); err != nil {
		t.Fatal(err)
	}
	k.says(`blackhole`, "incidents", "--cause", "blackhole")
	found := asJSON[api.Page[api.Incident]](k, "incidents", "--cause", "blackhole")
	k.says(`(?s)^runbook\n1\. compare the route to (10\.\S+) on leaf0 .*\(on leaf0\)\n   sonic    show ip route 10\.\S+\n   eos `, "incidents", found.Items[0].ID)
	id := found.Items[0].ID
	k.says(`^`+id+`: ack by operator$`, "incidents", "ack", id)
	k.says(`^`+id+`: mute by operator, no alerts until 20`, "incidents", "mute", id, "--for", "2h", "--text", "known")
	k.weft(0, "incidents", "assign", id, "alice")
	k.weft(0, "incidents", "comment", id, "route withdrawn by hand")
	k.says(`(?s)acknowledged by operator, assigned to alice, muted until 20.*operator +route withdrawn by hand`, "incidents", id)
	k.says(`^black hole +leaf0 .* confirmed$`, "flows", "--top", "1")

	page := asJSON[api.FlowPage](k, "flows", "--top", "3", "--sort", "packets")
	if len(page.Items) != 3 || page.Items[0].Packets < page.Items[2].Packets {
		t.Fatalf("flows %+v; want the three of most packets", page.Items)
	}
	key := page.Items[0].Flow.String()
	for want, args := range map[string][]string{
		`(?s)HOP +SWITCH.*1 +tor`: {"flows", "--flow", key},
		`^no flows$`:              {"flows", "--filter", "ip.src == 192.0.2.1"},

		`^PORT +QUEUE +LATENCY +LOAD +PAUSED +LOST +AGE$`:    {"ports"},
		`^tor0 Ethernet8 → leaf0 \(tor0:3\), 10 Gb/s, from `: {"ports", "--port", "tor0>leaf0", "--last", "100ms"},
		`^tor0 Ethernet0 → h0 +\|`: {
			"ports", "--heat", "--node", "tor0", "--steps", "20",
			"--last", "1s",
		},
		`^no counters|^COUNTER`:             {"counter"},
		`^no marks|^ID +STATE`:              {"debug"},
		`^no diagnoses$|^ID +TIME +ANOMALY`: {"diagnose"},
		`^no probes|^ID +START`:             {"probe"},
	} {
		k.says(want, args...)
	}

	traces := k.says(`lost`, "trace", "--end", "lost", "--last", "10m", "--top", "2")
	list := asJSON[api.Page[api.TraceSummary]](k, "trace", "--end", "lost", "--top", "2")
	if len(list.Items) == 0 || list.Next == "" && len(list.Items) > 2 {
		t.Fatalf("traces %+v; the table was\n%s", list, traces)
	}
	file := filepath.Join(t.TempDir(), "one.pcapng")
	ladder := k.weft(0, "trace", "--id", list.Items[0].ID, "--pcapng", file)
	if !strings.Contains(ladder, "not seen after this hop") || !strings.Contains(ladder, "TO NEXT HOP") {
		t.Errorf("ladder\n%s", ladder)
	}
	if b, err := os.ReadFile(file); err != nil || len(b) < 28 || b[0] != 0x0a {
		t.Errorf("%d bytes of capture, %v", len(b), err)
	}

	if link := k.weft(0, "probe", "--link", "tor0>leaf0", "--count", "5"); !strings.Contains(link, "MIN RTT") {
		t.Errorf("probe of a link\n%s", link)
	}
	if path := k.says("of 3 probes were seen", "probe", "--flow", key, "--path", "--count", "3"); !strings.Contains(path, "HOP") {
		t.Errorf("probe of a path\n%s", path)
	}
	k.weft(0, "probe", "--id", asJSON[api.Page[api.Probe]](k, "probe").Items[0].ID, "-o", "json")

	k.weft(0, "counter", "--add", "all=ip.src == 10.0.0.0/8")
	k.says(`^\S+Z +all +[1-9]\d* `, "counter", "all", "--last", "10s")
	if text := k.weft(0, "counter", "--remove", "all"); strings.Contains(text, "\nall ") {
		t.Errorf("counters after one was removed\n%s", text)
	}
	if text := k.weft(0, "debug", "--flow", key, "--for", "50ms"); !strings.Contains(text, key) {
		t.Errorf("marks\n%s", text)
	}
	k.diagnose(c)

	for _, wrong := range []struct {
		code int
		want string
		args []string
	}{
		{2, "want a scenario, or a controller", []string{"flows", "x.yaml"}},
		{2, "--seed needs a scenario", []string{"ports", "--seed", "3"}},
		{2, "unknown field", []string{"flows", "--filter", "ip.scr == h0"}},
		{2, "want a time such as", []string{"trace", "--from", "2ms"}},
		{2, `unknown node "tor99"`, []string{"ports", "--port", "tor99>leaf0"}},
		{2, "no link from tor0 to spine0", []string{"probe", "--link", "tor0>spine0"}},
		{2, "--id shows a probe that was sent", []string{"probe", "--id", "p1", "--flow", key}},
		{2, "--draw needs --id", []string{"diagnose", "--draw", "x.svg"}},
		{2, "--show 3: no trace matches", []string{"trace", "--filter", "trace.hops == 99", "--show", "3"}},
		{1, "not found", []string{"trace", "--id", "1"}},
		{1, "not found", []string{"incidents", "i99999"}},
		{1, "not found", []string{"incidents", "ack", "i99999"}},
		{2, "--for 1ms, want 1s to 744h", []string{"incidents", "mute", "i1", "--for", "1ms"}},
	} {
		if text := k.weft(wrong.code, wrong.args...); !strings.Contains(strings.ToLower(text), strings.ToLower(wrong.want)) {
			t.Errorf("weft %q says\n%s\nwant %q", wrong.args, text, wrong.want)
		}
	}
	k.url = "http://127.0.0.1:1"
	for _, name := range []string{"flows", "trace", "ports", "probe", "counter", "debug", "diagnose", "incidents"} {
		if text := k.weft(1, name); !strings.Contains(text, "is weft serve or weft demo running there?") {
			t.Errorf("weft %s without a controller says\n%s", name, text)
		}
	}
}

// diagnose injects an incast and queries why flows to the receiver are slow.
func (k *queryRunner) diagnose(c *client.Client) {
	k.t.Helper()
	if _, err := c.InjectFault(k.t.Context(), api.FaultRequest{Kind: "incast", Node: "h5"}); err != nil {
		k.t.Fatal(err)
	}
	k.says(`^d\d+ `, "diagnose", "--top", "1")
	newest := asJSON[api.Page[api.Diagnosis]](k, "diagnose", "--top", "1").Items[0]
	svg := filepath.Join(k.t.TempDir(), "why.svg")
	if text := k.weft(0, "diagnose", "--id", newest.ID, "--draw", svg); !strings.Contains(text, "; initial location ") {
		k.t.Errorf("weft diagnose --id says\n%s", text)
	}
	if b, err := os.ReadFile(svg); err != nil || !bytes.Contains(b, []byte("<svg")) {
		k.t.Errorf("%d bytes of a drawing, %v", len(b), err)
	}
	if text := k.weft(1, "diagnose", "udp 10.0.0.2:1 > 10.1.0.2:1"); !strings.Contains(text, "not a flow that a host sends") {
		k.t.Errorf("weft diagnose of no flow says\n%s", text)
	}
}

// TestSlowFlowVerdicts: what is printed of a slow flow, and the exit code.
func TestSlowFlowVerdicts(t *testing.T) {
	key, err := model.ParseFlowKey("udp 10.0.0.2:1 > 10.1.0.2:4791")
	if err != nil {
		t.Fatal(err)
	}
	for want, s := range map[string]api.SlowFlow{
		"no verdict yet": {State: "waiting"},
		"no cause found in the network: the flow": {State: "done"},
		"contention, root cause incast (micro-burst); the": {State: "done", Verdicts: []api.SlowFlowVerdict{{
			Anomaly: "contention", RootCause: "incast", CauseDetail: "micro-burst", Confidence: 0.9, Role: "victim",
			Culprits: []api.CulpritFlow{{
				Flow:   key,
				Weight: 0.5,
			}}, Others: true, Advice: "Spread them.", Diagnosis: "d7",
		}}},
	} {
		s.Flow, s.ID = key, "c1"
		var out bytes.Buffer
		err := (&app{}).printSlowFlow(&out, &s)
		if !strings.Contains(out.String(), want) || (err == errFault) != (len(s.Verdicts) > 0) {
			t.Errorf("printSlowFlow = %v and\n%s\nwant %q", err, &out, want)
		}
	}
}
