package truth

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// bed is a network under record.
type bed struct {
	*sim.Network
	t testing.TB
	r *Recorder
}

// lay builds a network of a fabric with a Recorder.
func lay(t testing.TB, f *topo.Fabric, err error, rc topo.RouteConfig, cfg sim.Config, o Options) *bed {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, rc)
	if err != nil {
		t.Fatal(err)
	}
	n, err := sim.New(routes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Record(n, o)
	if err != nil {
		t.Fatal(err)
	}
	return &bed{n, t, r}
}

func dumbbell(t testing.TB, hosts int, cfg sim.Config, o Options) *bed {
	f, err := topo.Dumbbell(hosts, topo.DefaultLinks())
	return lay(t, f, err, topo.RouteConfig{Seed: 1}, cfg, o)
}

func fatTree(t testing.TB, cfg sim.Config, o Options) *bed {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	return lay(t, f, err, topo.RouteConfig{Seed: 1}, cfg, o)
}

// ring has four switches s0 to s3 with hosts h0 to h3, and routes that always
// lead clockwise: a cyclic buffer dependency.
func ring(t testing.TB, cfg sim.Config, o Options) *bed {
	t.Helper()
	f, err := topo.Ring(4, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	rc := topo.RouteConfig{Seed: 1}
	for i := range model.NodeID(4) {
		for h := range model.NodeID(4) {
			if h != i {
				rc.Overrides = append(rc.Overrides, f.RouteTo(4+i, h, f.Node(4+i).PortsTo(4+(i+1)%4)...)...)
			}
		}
	}
	return lay(t, f, nil, rc, cfg, o)
}

// unthrottled is RDMA at line rate in a small buffer.
func unthrottled() sim.Config {
	cfg := sim.DefaultConfig()
	cfg.Congestion, cfg.Window, cfg.AckControl = nil, false, true
	cfg.Buffer = 400 * model.KB
	return cfg
}

func (b *bed) add(flows ...traffic.Flow) {
	b.t.Helper()
	if err := b.AddFlows(flows); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) inject(in sim.Injection) {
	b.t.Helper()
	if err := b.r.Inject(in); err != nil {
		b.t.Fatal(err)
	}
}

// run runs to a time and checks the counts there.
func (b *bed) run(until time.Duration) {
	b.t.Helper()
	b.Run(engine.Of(until))
	if err := b.r.Conserved(); err != nil {
		b.t.Errorf("at %v: %v", until, err)
	}
}

// around are flows that each go two switches clockwise, so that every link
// between switches has two to carry.
func around(size model.Bytes) (flows []traffic.Flow) {
	for i := range model.NodeID(4) {
		flows = append(flows, traffic.Flow{Src: i, Dst: (i + 2) % 4, Bytes: size, Priority: 3, Start: 1000})
	}
	return flows
}

// clockwise is the port by which s<i> sends to the next switch.
func (b *bed) clockwise(i model.NodeID) model.Port {
	return model.Port{Node: 4 + i, Port: b.Fabric().Node(4 + i).PortsTo(4 + (i+1)%4)[0]}
}

// just is the prefix of one node.
func (b *bed) just(id model.NodeID) netip.Prefix {
	return netip.PrefixFrom(b.Fabric().Node(id).IPv4.Netip(), 32)
}

// incast are flows of all hosts of a fat-tree to the last.
func incast(size model.Bytes) (flows []traffic.Flow) {
	for src := range model.NodeID(15) {
		flows = append(flows, traffic.Flow{Src: src, Dst: 15, Bytes: size, Priority: 3, Start: 1000})
	}
	return flows
}
