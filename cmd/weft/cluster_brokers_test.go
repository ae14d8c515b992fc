package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/control/cluster"
	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/nats"
)

const shippedRecording = "../../examples/recording/reports"

// freeAddresses are some that nothing listens on.
func freeAddresses(t *testing.T, n int) (list []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // when all are chosen
		list = append(list, l.Addr().String())
	}
	return list
}

// brokerMember is weft serve with a NATS server of three.
type brokerMember struct {
	process
	dir    string
	args   []string
	listen string
}

func (m *brokerMember) start(t *testing.T) {
	t.Helper()
	m.process.t, m.done = t, make(chan error, 1)
	m.log.Reset()
	m.cmd = exec.Command("weft", m.args...)
	m.cmd.Dir, m.cmd.Stderr = m.dir, &m.process
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, done := m.cmd, m.done
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
}

// killAt is a Publisher that has something done at some ticks.
type killAt struct {
	*cluster.Publisher
	ticks int
	at    map[int]func()
}

// Tick is part of control.Forwarder.
func (f *killAt) Tick(now model.Time) {
	f.Publisher.Tick(now)
	if f.ticks++; f.at[f.ticks] != nil {
		f.at[f.ticks]()
		delete(f.at, f.ticks)
	}
}

// TestBrokersReplaceEachOther: three processes, two that analyse and one that leads, each
// with a NATS server. SIGKILL ends those that analyse, one after the other, while a
// recording passes through, and each starts again on its files: what is stored is what one
// process finds, without a second incident.
func TestBrokersReplaceEachOther(t *testing.T) {
	race.LeaveToPlainRun(t) // the processes are what works
	config := func(values map[string]string) serve.Config {
		values["topology"] = shippedRecording + ".topology.yaml"
		cfg, err := serve.Source{Env: func(string) (string, bool) { return "", false }, Flags: values}.Load()
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	alone, at := config(map[string]string{}), filepath.Join(t.TempDir(), "alone.duckdb")
	withRecords(t, at, func(s *embedded.Store) {
		r, err := serve.NewReplay(t.Context(), alone, nil, s)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Run(t.Context(), openRecording(t, &alone)); err != nil {
			t.Fatal(err)
		}
	})
	topology, err := filepath.Abs(shippedRecording + ".topology.yaml")
	if err != nil {
		t.Fatal(err)
	}
	members, stored := make([]*brokerMember, 3), filepath.Join(t.TempDir(), "cluster.duckdb")
	free := freeAddresses(t, 2*len(members))
	urls, routes := free[:len(members)], free[len(members):]
	for i := range members {
		members[i] = &brokerMember{dir: t.TempDir(), listen: urls[i]}
	}
	for i, m := range members {
		put(t, m.dir, "weft.yaml", fmt.Sprintf("topology: %q\nstore: {path: %q, retention: {flows: forever, losses: forever, ports: forever, traces: forever, diagnoses: forever, incidents: forever}}\n"+
			"stream: {url: \"embedded:%s\", member: b%d, cluster: %q, routes: \"%s\", replicas: 3, partitions: 4, lease: 8s, token: secret}\n",
			topology, stored, m.listen, i, routes[i], strings.Join(routes, ", ")))
		m.args = []string{"serve", "--config", "weft.yaml", "--role", []string{"analyze", "analyze", "lead"}[i]}
		m.start(t)
	}
	members[2].says("msg=leading")
	cfg := config(map[string]string{"stream.url": strings.Join(urls, ","), "stream.partitions": "4", "stream.replicas": "3", "stream.token": "secret", "stream.lease": "8s"})
	c, err := connectCluster(t.Context(), &cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close() //nolint:errcheck // its servers have ended
	controller, err := serve.ControllerConfig(&cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	kill := func(m *brokerMember) func() {
		return func() {
			_ = m.cmd.Process.Kill()
			<-m.done
			// The two others store what was published before this one is back.
			if err := c.flows.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			if err := c.lead.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			m.start(t)
			m.says("msg=ready") // its server has joined the others
		}
	}
	to := &killAt{Publisher: cluster.NewPublisher(&controller, c.streams(), t.Context()), at: map[int]func(){100: kill(members[0]), 250: kill(members[1])}}
	r, err := serve.NewForwardingReplay(t.Context(), cfg, nil, to)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Run(t.Context(), openRecording(t, &cfg)); err != nil {
		t.Fatal(err)
	}
	if len(to.at) > 0 {
		t.Fatalf("%d members were not killed in %d ticks", len(to.at), to.ticks)
	}
	if err := c.waitForLeader(t.Context(), to.Publisher); err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		m.signal(os.Interrupt)
	}
	for _, m := range members {
		<-m.done
	}
	var want, got map[string][]string
	withRecords(t, at, func(s *embedded.Store) { want = storedRecords(t, s) })
	withRecords(t, stored, func(s *embedded.Store) { got = storedRecords(t, s) })
	if len(want["incidents"]) != 3 || len(want["flows"]) < 100 {
		t.Fatalf("%d incidents and %d flows alone; want 3, and many", len(want["incidents"]), len(want["flows"]))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alone (-) and with servers that died (+): %s", diff)
	}
}

func openRecording(t *testing.T, cfg *serve.Config) *capture.Reader {
	t.Helper()
	r, err := capture.Open(cfg.Ports(), capture.Input{Path: shippedRecording + ".pcapng"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// withRecords opens a file without retention: the recording is old.
func withRecords(t *testing.T, path string, use func(*embedded.Store)) {
	t.Helper()
	c := embedded.DefaultConfig()
	c.Retention = store.Retention{}
	s, err := embedded.Open(path, c)
	if err != nil {
		t.Fatal(err)
	}
	use(s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// storedRecords is what analyses have stored, in a fixed order.
func storedRecords(t *testing.T, s *embedded.Store) map[string][]string {
	all := map[string][]string{
		"flows": listed(t, s.Flows), "losses": listed(t, s.Losses), "ports": listed(t, s.Ports),
		"traces": listed(t, s.Traces), "diagnoses": listed(t, s.Diagnoses), "incidents": listed(t, s.Incidents),
	}
	for _, list := range all {
		slices.Sort(list)
	}
	return all
}

func listed[T any](t *testing.T, query func(context.Context, record.Query) (record.Page[T], error)) (list []string) {
	t.Helper()
	for q := (record.Query{}); ; {
		page, err := query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Items {
			list = append(list, fmt.Sprintf("%+v", page.Items[i]))
		}
		if q.After = page.Next; q.After == "" {
			return list
		}
	}
}

// TestDecoderTakesOver starts two processes that decode: one receives, the other is its
// standby, and receives within the lease's time after SIGKILL has ended the first.
func TestDecoderTakesOver(t *testing.T) {
	race.LeaveToPlainRun(t) // the processes are what works
	b, err := nats.StartBroker(nats.BrokerConfig{Listen: "127.0.0.1:0", Dir: t.TempDir(), MaxStore: model.GiB})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	topology, err := filepath.Abs(shippedRecording + ".topology.yaml")
	if err != nil {
		t.Fatal(err)
	}
	members := make([]*brokerMember, 2)
	for i := range members {
		members[i] = &brokerMember{dir: t.TempDir()}
		put(t, members[i].dir, "weft.yaml", fmt.Sprintf("topology: %q\nstream: {url: %q, member: d%d}\ndta: {listen: \"127.0.0.1:0\"}\n", topology, b.URL(), i))
		members[i].args = []string{"serve", "--config", "weft.yaml", "--role", "decode"}
		members[i].start(t)
		members[i].says([]string{"msg=receiving", "msg=ready"}[i])
	}
	config := filepath.Join(members[0].dir, "weft.yaml")
	shows := func(want string) {
		t.Helper()
		var out bytes.Buffer
		within(t, "weft serve --cluster shows "+want, func() bool {
			out.Reset()
			(&app{}).run([]string{"serve", "--config", config, "--cluster"}, &out, &out)
			return regexp.MustCompile("(?m)" + want).MatchString(out.String())
		}, out.String)
	}
	shows(`^decode +d0 +the switches\ndecode +d1 +nothing: standby$`)
	if strings.Contains(members[1].logged(), "msg=receiving") {
		t.Fatal("both decoders receive")
	}
	members[0].signal(os.Kill)
	members[1].says("msg=receiving")
	members[0].start(t)
	shows(`^decode +d0 +nothing: standby\ndecode +d1 +the switches$`)
	members[1].signal(os.Interrupt) // as an operator ends it
	members[0].says("msg=receiving")
	members[0].signal(os.Interrupt)
	for _, m := range members {
		<-m.done
	}
}
