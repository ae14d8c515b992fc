package truth

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

// golden compares with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}

// storm is a dumbbell with two hosts a side whose host 2 pauses its switch:
// flow 0 goes there, flow 1 goes past it and is affected, flow 2 is a
// bystander.
func storm(t *testing.T) *bed {
	b := dumbbell(t, 2, unthrottled(), All())
	b.add(
		traffic.Flow{Src: 0, Dst: 2, Bytes: 2_000_000, Priority: 3, Start: 1000},
		traffic.Flow{Src: 1, Dst: 3, Bytes: 2_000_000, Priority: 3, Start: 1000},
		traffic.Flow{Src: 3, Dst: 2, Bytes: 2_000_000, Priority: 5, Start: 1000},
	)
	b.inject(sim.Injection{At: 20_000, Fault: sim.Storm{Host: 2, Priority: 3}})
	b.run(100 * time.Microsecond)
	return b
}

func TestWaitForStorm(t *testing.T) {
	b := storm(t)
	g := WaitFor(b.Network)
	golden(t, "storm.txt", g.String())
	bytes, err := json.MarshalIndent(g, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "storm.json", string(bytes)+"\n")

	victim := g.Closure(FlowNode(1, false))
	roots := victim.Roots()
	if len(roots) != 1 || roots[0].Kind != RootHost || roots[0].Nodes[0] != HostNode(2) {
		t.Errorf("roots of the victim %+v; want host 2 alone\n%v", roots, g)
	}
	if got, want := victim.Hosts(), []model.NodeID{2}; !slices.Equal(got, want) {
		t.Errorf("hosts that the victim waits for %v; want %v", got, want)
	}
	if got, want := victim.Switches(), []model.NodeID{4, 5}; !slices.Equal(got, want) {
		t.Errorf("switches that the victim waits for %v; want %v", got, want)
	}
	if stopped := QueueNode(model.Port{Node: 5, Port: 1}, 3); !victim.Has(stopped) || victim.Has(FlowNode(0, false)) {
		t.Errorf("the victim's closure %+v; want the paused queue in it, and not the flow after it", victim.Nodes)
	}
}

// A graph can be asked for in the middle of a run.
func TestWaitForAt(t *testing.T) {
	b := storm(t)
	var then *Graph
	b.At(200*engine.Microsecond, func() { then = WaitFor(b.Network) })
	b.run(300 * time.Microsecond)
	if then == nil || then.At != 200*engine.Microsecond || len(then.Nodes) == 0 {
		t.Errorf("graph %v; want one of 200µs", then)
	}
}

// In an incast every flow waits for the queue to the receiver, if not at every
// instant: along the path pauses come and go, and while a queue is not paused,
// it is only busy.
func TestWaitForContention(t *testing.T) {
	b := fatTree(t, unthrottled(), All())
	b.add(incast(500_000)...)
	last := QueueNode(portOf(b.Host(15).Ports()[0].Peer()), 3)
	var reached [15]bool
	for at := 60 * time.Microsecond; at <= 200*time.Microsecond; at += 10 * time.Microsecond {
		b.run(at)
		g := WaitFor(b.Network)
		for id := range reached {
			for _, r := range g.Closure(FlowNode(id, false), FlowNode(id, true)).Roots() {
				if r.Kind == RootHost || r.Kind == RootCycle {
					t.Errorf("at %v flow %d has the root %+v; want no host, no loop\n%v", at, id, r, g)
				}
				reached[id] = reached[id] || r.Nodes[0] == last && len(r.Flows) > 1
			}
		}
	}
	for id, ok := range reached {
		if !ok {
			t.Errorf("flow %d never waits for %v, where all of them contend", id, last)
		}
	}
}

// A flow to a free host waits in its own: another flow of that host got it
// paused.
func TestWaitForUnsent(t *testing.T) {
	b := dumbbell(t, 2, unthrottled(), All())
	b.add(
		traffic.Flow{Src: 0, Dst: 2, Bytes: 2_000_000, Priority: 3},
		traffic.Flow{Src: 0, Dst: 1, Bytes: 2_000_000, Priority: 3},
	)
	b.inject(sim.Injection{At: 20_000, Fault: sim.Storm{Host: 2, Priority: 3}})
	b.run(200 * time.Microsecond)
	g := WaitFor(b.Network)
	victim, nic := FlowNode(1, false), QueueNode(portOf(b.Host(0).Ports()[0]), 3)
	if got, want := g.EdgesFrom(victim), []Edge{{From: victim, To: nic, Reason: ReasonUnsent}}; !slices.Equal(got, want) {
		t.Errorf("the victim waits for %+v; want only its own host's port\n%v", got, g)
	}
	if hosts := g.Closure(victim).Hosts(); !slices.Equal(hosts, []model.NodeID{2}) {
		t.Errorf("hosts that the victim waits for %v; want 2\n%v", hosts, g)
	}
}

// Two priorities on one wire wait for each other's turns.
func TestWaitForShares(t *testing.T) {
	b := dumbbell(t, 2, unthrottled(), All())
	for prio := range model.Priority(2) {
		b.add(traffic.Flow{Src: model.NodeID(prio), Dst: 2, Bytes: 500_000, Priority: prio, Transport: traffic.UDP, Start: 1000})
	}
	b.run(20 * time.Microsecond)
	g := WaitFor(b.Network)
	wire := model.Port{Node: 4, Port: 3}
	queues := g.QueuesOf(wire)
	if want := []Node{QueueNode(wire, 0), QueueNode(wire, 1)}; !slices.Equal(queues, want) {
		t.Fatalf("queues of %v: %+v; want %+v\n%v", wire, queues, want, g)
	}
	if c := g.Closure(FlowNode(0, false)); !c.Has(queues[1]) || !c.Has(FlowNode(1, false)) {
		t.Errorf("flow 0 waits for %+v; want also the other priority and its flow\n%v", c.Nodes, g)
	}
}
