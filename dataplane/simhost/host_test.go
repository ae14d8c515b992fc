package simhost

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// network builds a simulation of a fabric.
func network(t testing.TB, f *topo.Fabric, err error, cfg sim.Config) *sim.Network {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: cfg.Seed})
	if err != nil {
		t.Fatal(err)
	}
	n, err := sim.New(routes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fatTree is the k=4 fat-tree: hosts 0 to 15.
func fatTree(t testing.TB, cfg sim.Config) *sim.Network {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	return network(t, f, err, cfg)
}

// dumbbell has hosts 0 and 1 on switch 4, hosts 2 and 3 on switch 5. Ports 1
// and 2 of each switch lead to its hosts, port 3 to the other switch.
func dumbbell(t testing.TB, cfg sim.Config) *sim.Network {
	f, err := topo.Dumbbell(2, topo.DefaultLinks())
	return network(t, f, err, cfg)
}

func add(t testing.TB, n *sim.Network, flows ...traffic.Flow) {
	t.Helper()
	if err := n.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
}

func attach(t testing.TB, n *sim.Network, id model.NodeID, cfg Config, programs ...inswitch.Program) *Switch {
	t.Helper()
	s, err := Attach(n, id, inswitch.NewPipeline(programs...), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scripted does at every event what its test says.
type scripted struct {
	stages inswitch.Stages
	do     func(ev *inswitch.Event, act *inswitch.Actions)
}

func (p scripted) Stages() inswitch.Stages                           { return p.stages }
func (p scripted) Observe(ev *inswitch.Event, act *inswitch.Actions) { p.do(ev, act) }

// first is a program of one function.
func at(do func(ev *inswitch.Event, act *inswitch.Actions), stages ...inswitch.Stage) inswitch.Program {
	return scripted{inswitch.StageSet(stages...), do}
}

// counter is a passive program that observes everything.
type counter struct {
	events  [8]int64 // by stage
	bytes   int64
	depth   int64
	waited  time.Duration
	pauses  int64
	perPort [64]int64
}

func (c *counter) Stages() inswitch.Stages {
	return inswitch.StageSet(inswitch.Ingress, inswitch.Routed, inswitch.Enqueue, inswitch.Dequeue, inswitch.PFC, inswitch.Timer)
}

func (c *counter) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	c.events[ev.Stage]++
	switch ev.Stage {
	case inswitch.Enqueue:
		c.bytes += int64(ev.Packet.Size)
		c.depth += int64(ev.Queue.Bytes)
		c.perPort[ev.Out]++
	case inswitch.Dequeue:
		c.waited += ev.Latency
	case inswitch.PFC:
		c.pauses++
	case inswitch.Timer:
		act.SetTimer(10*time.Microsecond, 1)
	}
}

// busy is a workload with PFC, ECN, several transports and both families.
func busy() (flows []traffic.Flow) {
	for src := range model.NodeID(16) {
		if src != 15 {
			flows = append(flows, traffic.Flow{Src: src, Dst: 15, Bytes: 200_000, Priority: 3, Start: 1000, V6: src%2 == 0})
		}
		flows = append(
			flows,
			traffic.Flow{Src: src, Dst: (src + 5) % 16, Bytes: 100_000, Priority: 3, Start: 2000},
			traffic.Flow{Src: src, Dst: (src + 9) % 16, Bytes: 30_000, Priority: 1, Transport: traffic.TCP, Start: 3000},
			traffic.Flow{Src: src, Dst: (src + 2) % 16, Bytes: 20_000, Transport: traffic.UDP, Rate: 10 * model.Gbps, Start: 3000},
		)
	}
	return flows
}

// tight makes PFC fire.
func tight() sim.Config {
	cfg := sim.DefaultConfig()
	cfg.Buffer = 2 * model.MB
	return cfg
}

const (
	µs = engine.Microsecond
	ms = engine.Millisecond
)
