package serve

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/dataplane/sonic"
	"github.com/weft-telemetry/weft/ingest/gnmi"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/discover"
	"github.com/weft-telemetry/weft/topo/file"
)

// stormYAML is a fabric of two leaves whose host h3 pauses its leaf for six intervals of
// 100 ms. Links are slow, so that the simulation takes little work.
const stormYAML = `
duration: 1s
topology: {generate: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2, rate: 100Mb/s}}
fabric: {mtu: 1024, buffer: 200kB}
traffic:
  - {kind: persistent, pairs: [h0>h3, h1>h3, h2>h3], rate: 10Mb/s}
faults:
  - {kind: storm, host: h3, at: 250ms, for: 600ms}
`

// sonicBed is a simulated SONiC fabric and a service that watches it.
type sonicBed struct {
	*bed
	scenario *scenario.Scenario
}

// serveAlongside runs a service until the test's end.
func serveAlongside(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
}

// readStorm is the scenario, and the configuration of a service with its topology.
func readStorm(t *testing.T) (*scenario.Scenario, Config) {
	s, err := scenario.Parse("storm.yaml", []byte(stormYAML))
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t)
	cfg.Topology = filepath.Join(t.TempDir(), "fabric.yaml")
	f, err := os.Create(cfg.Topology)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Write(f, file.YAML, s.Topology); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return s, cfg
}

func listenTargets(t *testing.T, f *topo.Fabric) *sonic.Targets {
	targets, err := sonic.ListenTargets(f, netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	serveAlongside(t, targets.Run)
	return targets
}

// sflowTo sends datagrams to the service's sFlow socket.
func (b *sonicBed) sflowTo() func(model.Time, model.NodeID, []byte) error {
	conn, err := net.Dial("udp", b.address("sflow"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	return func(_ model.Time, _ model.NodeID, datagram []byte) error {
		_, err := conn.Write(datagram)
		return err
	}
}

// findsStorm runs the scenario by the wall clock, as the service analyses, and waits for the incident.
func (b *sonicBed) findsStorm(out sonic.Outlets) {
	b.t.Helper()
	export := sonic.Config{Interval: 100 * time.Millisecond, HighFrequency: 100 * time.Millisecond, Sampling: 16, Seed: 1}
	r, err := live.NewScenarioSONiC(b.scenario, export, time.Now(), out)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := r.RunRealTime(b.t.Context(), live.RealTime{}); err != nil {
		b.t.Fatal(err)
	}
	eventually(b.t, "the storm of h3 is found", func() bool {
		for _, in := range b.incidents() {
			if in.Cause == "storm" && in.Location == "h3" {
				return true
			}
		}
		return false
	})
	if h := b.Health(); h.NoData != nil {
		b.t.Errorf("health says %q after counters came; want no such state", h.State)
	}
}

// TestSONiCFabricByGNMI: simulated switches describe their fabric by LLDP, and gNMI's counters
// with sFlow's samples show a storm, as those of real switches would.
func TestSONiCFabricByGNMI(t *testing.T) {
	race.LeaveToPlainRun(t) // simulates by the wall clock
	s, cfg := readStorm(t)
	targets := listenTargets(t, s.Topology.Fabric)
	set(t, &cfg, "sflow.listen", "127.0.0.1:0")
	set(t, &cfg, "gnmi.targets", strings.Join(targets.List(), ","))
	set(t, &cfg, "gnmi.tls", "off")
	set(t, &cfg, "gnmi.interval", "100ms")
	b := &sonicBed{start(t, cfg), s}
	if err := targets.AwaitSubscribers(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.findsStorm(sonic.Outlets{Targets: targets, SFlow: b.sflowTo()})
	if st := b.stage("gnmi"); st.Out == 0 {
		t.Errorf("gnmi took %d of %d updates; want some", st.Out, st.In)
	}
}

// TestSONiCFabricByOTLP: so does high-frequency telemetry alone.
func TestSONiCFabricByOTLP(t *testing.T) {
	race.LeaveToPlainRun(t) // simulates by the wall clock
	s, cfg := readStorm(t)
	set(t, &cfg, "otlp.listen", "127.0.0.1:0")
	b := &sonicBed{start(t, cfg), s}
	metrics, err := sonic.NewMetrics(s.Topology.Fabric, b.address("otlp"))
	if err != nil {
		t.Fatal(err)
	}
	serveAlongside(t, metrics.Run)
	b.findsStorm(sonic.Outlets{Metrics: metrics})
	if st := metrics.Stats(); st.Sent == 0 || st.Failed > 0 {
		t.Errorf("requests: %+v; want some sent, and none failed", st)
	}
	b.clean("otlp")
}

// TestDiscoverSimulatedFabric: LLDP by gNMI gives the simulator's fabric back: nodes with their
// addresses, links with their rates, switches as switches.
func TestDiscoverSimulatedFabric(t *testing.T) {
	s, _ := readStorm(t)
	want := s.Topology.Fabric
	ask := gnmi.Source.NewConfig().(*gnmi.Config)
	ask.Targets, ask.TLS = listenTargets(t, want).List(), gnmi.TLSOff
	nodes, err := ask.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, findings, err := discover.Build(discover.Config{Name: "found", Link: topo.LinkSpec{Rate: 1, Delay: time.Microsecond}}, nodes)
	if err != nil || len(findings) > 0 {
		t.Fatalf("%v, findings %v; want none", err, findings)
	}
	if d := cmp.Diff(describe(want), describe(got)); d != "" {
		t.Errorf("fabric (- simulated, + discovered):\n%s", d)
	}
}

// describe lists the nodes and links of a fabric by their names.
func describe(f *topo.Fabric) (list []string) {
	for i := range f.Nodes() {
		n := f.Node(model.NodeID(i))
		list = append(list, fmt.Sprintf("%s %v switch %v", n.Name, n.IPv4, n.Role.IsSwitch()))
		for p := range n.Ports {
			at := model.Port{Node: n.ID, Port: model.PortID(p + 1)}
			list = append(list, fmt.Sprintf("%s > %s %v", f.PortName(at), f.PortName(f.Port(at).Peer), f.Port(at).Rate))
		}
	}
	slices.Sort(list)
	return list
}
