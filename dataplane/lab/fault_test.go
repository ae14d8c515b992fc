package lab_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/dataplane/lab"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// watched is a lab whose agents report to a service.
type watched struct {
	t      *testing.T
	lab    *lab.Lab
	fabric *topo.Fabric
	api    *client.Client
	born   time.Time
}

// serveConfig is a service on free ports of loopback, for a topology.
func serveConfig(t *testing.T, doc *file.Document, slot time.Duration) serve.Config {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "fabric.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Write(f, file.YAML, doc); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := serve.DefaultConfig()
	cfg.Topology, cfg.Store.Path = f.Name(), filepath.Join(dir, "weft.duckdb")
	cfg.API.Listen, cfg.Controller.Slot, cfg.Controller.Flows = "127.0.0.1:0", slot, 200
	cfg.DTA().Listen = netip.MustParseAddrPort("127.0.0.1:0")
	for _, s := range serve.Settings() {
		if s.Key == "int.listen" {
			if err := s.Set(&cfg, "127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cfg
}

// watch starts a service, a lab and its traffic, until the test ends.
func watch(t *testing.T, send lab.TrafficConfig, mirrors *mirror.Config) *watched {
	t.Helper()
	f, err := topo.LeafSpine(4, 2, 2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	doc := &file.Document{Fabric: f}
	r, err := doc.Routes()
	if err != nil {
		t.Fatal(err)
	}
	agents := agentConfig(t, netip.AddrPort{})
	cfg := serveConfig(t, doc, agents.Flowset.Slot)
	st, err := embedded.Open(cfg.Store.Path, embedded.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := inproc.New(inproc.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	svc, err := serve.New(ctx, cfg, serve.Deps{Store: st, Stream: stream, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- svc.Run(ctx) }()

	lists := control.DefaultListPlan(f)
	agents.To = svc.Reports()
	if mirrors != nil {
		mirrors.List, mirrors.Lists = lists.Mirrors.First, uint32(lists.Mirrors.Count)
		agents.Mirrors = mirrors
	}
	l, err := lab.Up(lab.Config{Routes: r, Agent: agents, List: lists.FlowsetList})
	if err != nil {
		t.Fatal(err)
	}
	traffic, err := lab.NewTraffic(l, send)
	if err != nil {
		t.Fatal(err)
	}
	running := make(chan error, 1)
	go func() { running <- l.Run(ctx) }()
	sending := make(chan struct{})
	go func() { defer close(sending); traffic.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-sending
		for _, done := range []chan error{running, served} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := traffic.Close(); err != nil {
			t.Error(err)
		}
		closeLab(t, l)
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(fmt.Sprintf("http://%s", svc.Addr()), "", &http.Client{Transport: transport, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return &watched{t: t, lab: l, fabric: f, api: c, born: time.Now()}
}

// incidents are all that were found.
func (w *watched) incidents() []api.Incident {
	w.t.Helper()
	q := api.IncidentsQuery{}
	q.From, q.To, q.Limit = w.born, time.Now().Add(time.Hour), 1000
	page, err := w.api.Incidents(w.t.Context(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Items
}

// patience is how long a test waits at most: much longer than anything takes on a machine
// that has time.
const patience = time.Minute

// await waits until a condition holds, and returns how long that took.
func (w *watched) await(what string, holds func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > patience {
			w.t.Fatalf("not within %v: %s\nincidents: %+v", patience, what, w.incidents())
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

func (w *watched) node(name string) model.NodeID {
	w.t.Helper()
	id, ok := w.fabric.ByName(name)
	if !ok {
		w.t.Fatalf("no node %s", name)
	}
	return id
}

// port is the port of a node to another.
func (w *watched) port(from, to string) model.Port {
	w.t.Helper()
	at := w.node(from)
	return model.Port{Node: at, Port: w.fabric.Node(at).PortsTo(w.node(to))[0]}
}

// fault is one fault of a lab, and what must be found.
type fault struct {
	name   string
	inject func() (repair func() error, err error)
	causes []string // any of them
	nodes  []string // any of them is the location
}

// faults are one of each kind, at places that the round chooses.
func (w *watched) faults(round int) []fault {
	leaf, spine := round%4, round%2
	other := (leaf + 1) % 4
	name := func(kind string, i int) string { return fmt.Sprintf("%s%d", kind, i) }
	leafName, spineName, otherLeaf := name("leaf", leaf), name("spine", spine), name("leaf", other)
	remote, own := name("h", 2*other), name("h", 2*leaf)
	restore := func(at, host string) func() error {
		return func() error { return w.lab.RestoreRoute(w.node(at), w.node(host)) }
	}
	return []fault{
		{"black hole of " + remote + " at " + leafName, func() (func() error, error) {
			return restore(leafName, remote), w.lab.Blackhole(w.node(leafName), w.node(remote))
		}, []string{"blackhole"}, []string{leafName}},
		{"loop of " + own + " at " + leafName, func() (func() error, error) {
			return restore(leafName, own), w.lab.Misroute(w.node(leafName), w.node(own), w.port(leafName, spineName).Port)
		}, []string{"loop"}, []string{leafName, spineName}},
		{"wrong route of " + remote + " at " + otherLeaf, func() (func() error, error) {
			neighbour := name("h", 2*other+1)
			return restore(otherLeaf, remote), w.lab.Misroute(w.node(otherLeaf), w.node(remote), w.port(otherLeaf, neighbour).Port)
		}, []string{"wrong-route"}, []string{otherLeaf}},
		{"silent drop at " + spineName + " to " + otherLeaf, func() (func() error, error) {
			drop, err := w.lab.DropSilently(w.port(spineName, otherLeaf), 0.02)
			if err != nil {
				return nil, err
			}
			return drop.Close, nil
		}, []string{"loss"}, []string{spineName}},
		{"link of " + leafName + " and " + spineName + " down", func() (func() error, error) {
			p := w.port(leafName, spineName)
			return func() error { return w.lab.SetLink(p, true) }, w.lab.SetLink(p, false)
		}, []string{"dead-link", "blackhole"}, []string{leafName, spineName}},
		{"1 Mb/s at all spines to " + otherLeaf, func() (repair func() error, err error) {
			return w.limitRates(otherLeaf, "spine0", "spine1")
		}, []string{"loss"}, []string{"spine0", "spine1"}},
	}
}

// limitRates limits what switches send to another to 1 Mb/s each. The kernel's hash, whose
// seed is drawn, may give one of them a few flows only, which send less.
func (w *watched) limitRates(to string, from ...string) (repair func() error, err error) {
	var repairs []func() error
	repair = func() (err error) {
		for _, r := range repairs {
			err = errors.Join(err, r())
		}
		return err
	}
	for _, sw := range from {
		r, err := w.lab.LimitRate(w.port(sw, to), model.Mbps)
		if err != nil {
			return nil, errors.Join(err, repair())
		}
		repairs = append(repairs, r)
	}
	return repair, nil
}

// healthy waits for three seconds, in which nothing must be found.
func (w *watched) healthy() {
	w.t.Helper()
	known, end := len(w.incidents()), time.Now().Add(race.Less(3*time.Second, time.Second))
	w.await("healthy seconds", func() bool { return time.Now().After(end) })
	if found := w.incidents(); len(found) != known {
		w.t.Fatalf("on a healthy fabric, after %d incidents of faults: %+v; want no more", known, found)
	}
}

// TestFaultsAreNamed injects real faults into a fabric of kernels: cause and switch of each
// are named, and nothing is found in the healthy seconds before the first, and after each round.
func TestFaultsAreNamed(t *testing.T) {
	needsRoot(t)
	w := watch(t, lab.TrafficConfig{UDP: 1, IPv4: true, Pause: 5 * time.Millisecond}, nil)
	w.healthy()
	var took []time.Duration
	for round := range race.Less(4, 1) {
		list := w.faults(round)
		// The last needs more than 1 Mb/s to lose any of it, which hosts under the detector do not
		// send beside other tests.
		for _, f := range race.Less(list, list[:len(list)-1]) {
			known := len(w.incidents())
			repair, err := f.inject()
			if err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
			matches := func(in api.Incident) bool {
				node, _, _ := strings.Cut(in.Location, ":")
				return in.End == nil && slices.Contains(f.causes, in.Cause) && slices.Contains(f.nodes, node)
			}
			d := w.await(f.name+" is named", func() bool {
				return len(w.incidents()) > known && slices.ContainsFunc(w.incidents(), matches)
			})
			i := slices.IndexFunc(w.incidents(), matches)
			if i >= 0 {
				t.Logf("%-36s %5d ms  %s at %s: %s", f.name, d.Milliseconds(), w.incidents()[i].Cause, w.incidents()[i].Location, w.incidents()[i].Summary)
			}
			took = append(took, d)
			if err := repair(); err != nil {
				t.Fatalf("repair %s: %v", f.name, err)
			}
			w.await("all incidents are closed after "+f.name, func() bool {
				return !slices.ContainsFunc(w.incidents(), func(in api.Incident) bool { return in.End == nil })
			})
		}
		w.healthy()
	}
	slices.Sort(took)
	t.Logf("%d faults; time to name one: median %v, longest %v", len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
}
