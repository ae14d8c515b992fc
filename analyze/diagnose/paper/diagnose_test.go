package paper

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
)

const class = 3

// rig has a ring of three switches with two hosts each: ports 1 and 2 lead to the
// hosts, 3 and 4 to the neighbours.
type rig struct {
	t       *testing.T
	fabric  *topo.Fabric
	reports map[model.NodeID]*provenance.Report
}

func newRig(t *testing.T) *rig {
	f, err := topo.Ring(3, 2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, fabric: f, reports: map[model.NodeID]*provenance.Report{}}
}

func (r *rig) node(name string) model.NodeID {
	id, ok := r.fabric.ByName(name)
	if !ok {
		r.t.Fatalf("no node %s", name)
	}
	return id
}

// port returns the port of a switch to a neighbour.
func (r *rig) port(sw, to string) model.Port {
	id := r.node(sw)
	return model.Port{Node: id, Port: r.fabric.Node(id).PortsTo(r.node(to))[0]}
}

func (r *rig) key(n uint16) model.FlowKey {
	return model.FlowKey{Src: r.fabric.Node(r.node("h0")).IPv4, Dst: r.fabric.Node(r.node("h4")).IPv4, SrcPort: n, DstPort: 4791, Proto: model.UDP}
}

func (r *rig) report(sw model.NodeID) *provenance.Report {
	p := r.reports[sw]
	if p == nil {
		p = &provenance.Report{Header: epoch.Header{
			Switch: sw, Snapshot: model.Time(1900 * time.Microsecond), EpochLength: time.Millisecond,
		}}
		r.reports[sw] = p
	}
	return p
}

// queue records that packets joined a queue, some while it was paused, each behind
// a depth of others.
func (r *rig) queue(p model.Port, packets, paused uint32, depth uint64) {
	rep := r.report(p.Node)
	rep.PortEpochs = append(rep.PortEpochs, epoch.PortEpoch{
		Epoch: 1, Port: p.Port, Priority: class, Packets: packets, Paused: paused,
		Depth: uint64(packets-paused) * depth, PausedDepth: uint64(paused) * depth,
	})
}

// flow records a flow in a queue.
func (r *rig) flow(p model.Port, key model.FlowKey, packets, paused uint32, depth uint64) {
	rep := r.report(p.Node)
	rep.Flows = append(rep.Flows, epoch.Flow{
		Epoch: 1, Out: p.Port, Priority: class, Key: key, Packets: packets, Paused: paused,
		Depth: uint64(packets-paused) * depth, PausedDepth: uint64(paused) * depth,
	})
}

// meter records traffic from a neighbour to a port.
func (r *rig) meter(from string, p model.Port, packets uint32) {
	rep := r.report(p.Node)
	in := r.fabric.Node(p.Node).PortsTo(r.node(from))[0]
	rep.Meters = append(rep.Meters, epoch.Meter{Epoch: 1, In: in, Out: p.Port, Priority: class, Packets: packets})
}

func (r *rig) evidence() *provenance.Evidence {
	e := &provenance.Evidence{}
	for id := range model.NodeID(len(r.fabric.Nodes())) {
		if p := r.reports[id]; p != nil {
			e.Reports = append(e.Reports, p)
		}
	}
	return e
}

// drawPath draws a victim that is paused at s0 because of s1's queue to h2, which
// it does not join.
func (r *rig) drawPath() {
	a, z := r.port("s0", "s1"), r.port("s1", "h2")
	r.queue(a, 100, 60, 20)
	r.flow(a, r.key(1), 50, 30, 20)
	r.queue(z, 200, 0, 40)
	r.meter("s0", z, 80)
}

// TestSignatures draws the rows of Table 2.
func TestSignatures(t *testing.T) {
	for name, tc := range map[string]struct {
		draw    func(r *rig)
		what    anomaly.Type
		cause   anomaly.RootCause
		at      [2]string
		cycle   int
		culprit uint16
	}{
		"backpressure": {func(r *rig) {
			r.drawPath()
			z := r.port("s1", "h2")
			r.flow(z, r.key(2), 180, 0, 1)
			r.flow(z, r.key(3), 20, 0, 40)
		}, anomaly.PFCBackpressure, anomaly.ContendingFlows, [2]string{"s1", "h2"}, 0, 2},
		"storm": {func(r *rig) {
			r.drawPath()
			r.flow(r.port("s1", "h2"), r.key(2), 180, 180, 40)
		}, anomaly.PFCStorm, anomaly.HostInjection, [2]string{"s1", "h2"}, 0, 0},
		"contention": {func(r *rig) {
			z := r.port("s0", "h1")
			r.queue(z, 200, 0, 40)
			r.flow(z, r.key(1), 20, 0, 40)
			r.flow(z, r.key(2), 180, 0, 1)
		}, anomaly.FlowContention, anomaly.ContendingFlows, [2]string{"s0", "h1"}, 0, 2},
		"in-loop deadlock": {func(r *rig) {
			r.drawLoop()
			z := r.port("s1", "s2")
			r.flow(z, r.key(2), 180, 0, 1)
			r.flow(z, r.key(3), 20, 0, 40)
		}, anomaly.DeadlockInLoop, anomaly.ContendingFlows, [2]string{"s1", "s2"}, 3, 2},
		"out-of-loop deadlock": {func(r *rig) {
			r.drawLoop()
			z := r.port("s2", "h4")
			r.queue(z, 50, 50, 30)
			r.meter("s1", z, 40)
		}, anomaly.DeadlockOutOfLoop, anomaly.HostInjection, [2]string{"s2", "h4"}, 3, 0},
	} {
		r := newRig(t)
		tc.draw(r)
		list := Diagnose(r.evidence(), r.key(1), r.fabric)
		if len(list) == 0 {
			t.Errorf("%s: no verdict", name)
			continue
		}
		v := list[0]
		if v.Anomaly != tc.what || v.Cause != tc.cause || v.Initial != r.port(tc.at[0], tc.at[1]) || len(v.DeadlockCycle) != tc.cycle {
			t.Errorf("%s: %v by %v at %v with a cycle of %d; want %v by %v at %s to %s, %d", name, v.Anomaly, v.Cause,
				r.fabric.PortName(v.Initial), len(v.DeadlockCycle), tc.what, tc.cause, tc.at[0], tc.at[1], tc.cycle)
		}
		if tc.culprit != 0 && (len(v.Culprits) == 0 || v.Culprits[0].Flow != r.key(tc.culprit)) {
			t.Errorf("%s: culprits %v; want flow %d first", name, v.Culprits, tc.culprit)
		}
	}
}

// drawLoop draws three switches that pause each other, and the victim in the first.
func (r *rig) drawLoop() {
	names := []string{"s0", "s1", "s2"}
	for i, sw := range names {
		next := names[(i+1)%3]
		p := r.port(sw, next)
		r.queue(p, 100, 80, 30)
		r.meter(names[(i+2)%3], p, 60)
	}
	r.flow(r.port("s0", "s1"), r.key(1), 50, 40, 30)
}

// TestTelemetryIsThePapers: what its switches do not have does not matter.
func TestTelemetryIsThePapers(t *testing.T) {
	r := newRig(t)
	r.drawPath()
	z := r.port("s1", "h2")
	r.flow(z, r.key(2), 180, 0, 1)
	r.flow(z, r.key(3), 20, 0, 40)
	want := Diagnose(r.evidence(), r.key(1), r.fabric)
	rep := r.report(z.Node)
	rep.Ports = append(rep.Ports, epoch.Port{Port: z.Port, Priority: class, Paused: true, Queued: 1 << 20})
	rep.Pauses = append(rep.Pauses, epoch.Pause{Port: z.Port, Priority: class, Pauses: 9})
	rep.PortEpochs[0].PauseFrames = 7
	rep.Flows[0].First = time.Microsecond
	old := rep.Flows[1]
	old.Epoch, old.Packets, old.Depth = old.Epoch-2, 1000, 100_000
	rep.Flows = append(rep.Flows, old)
	got := Diagnose(r.evidence(), r.key(1), r.fabric)
	if len(got) != 1 || len(want) != 1 || got[0].Anomaly != want[0].Anomaly || got[0].Initial != want[0].Initial ||
		len(got[0].Culprits) != len(want[0].Culprits) || got[0].Culprits[0] != want[0].Culprits[0] {
		t.Errorf("with states, pauses, times and older epochs %+v; without %+v; want the same", got, want)
	}
}

func TestNothingReported(t *testing.T) {
	r := newRig(t)
	if list := Diagnose(r.evidence(), r.key(1), r.fabric); len(list) != 0 {
		t.Errorf("%d verdicts from no report; want none", len(list))
	}
}
