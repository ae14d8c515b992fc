package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

const (
	class = 3
	µs    = time.Microsecond
	now   = model.Time(10 * time.Millisecond)
	kb    = 1000
)

// testFabric is a fabric from which some switches have reported.
type testFabric struct {
	t        testing.TB
	fabric   *topo.Fabric
	intent   *topo.Intent
	reports  map[model.NodeID]*provenance.Report
	polledAt map[model.NodeID]model.Time // of switches that were polled after their snapshot
}

func newTestFabric(t testing.TB, f *topo.Fabric, err error, reported ...string) *testFabric {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	r, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := &testFabric{t: t, fabric: f, intent: topo.NewIntent(r), reports: map[model.NodeID]*provenance.Report{}}
	for _, name := range reported {
		id := b.id(name)
		b.reports[id] = &provenance.Report{
			Header: epoch.Header{Switch: id, Snapshot: now, EpochLength: time.Millisecond},
			Bytes:  100,
		}
	}
	return b
}

func (b *testFabric) id(name string) model.NodeID {
	id, ok := b.fabric.ByName(name)
	if !ok {
		b.t.Fatalf("no node %q", name)
	}
	return id
}

// port returns the port "s0>s1".
func (b *testFabric) port(name string) model.Port {
	from, to, _ := strings.Cut(name, ">")
	ports := b.fabric.Node(b.id(from)).PortsTo(b.id(to))
	if len(ports) == 0 {
		b.t.Fatalf("no port %q", name)
	}
	return model.Port{Node: b.id(from), Port: ports[0]}
}

// flow returns the flow "h0>h1".
func (b *testFabric) flow(name string) model.FlowKey {
	from, to, _ := strings.Cut(name, ">")
	return model.FlowKey{
		Src: b.fabric.Node(b.id(from)).IPv4, Dst: b.fabric.Node(b.id(to)).IPv4, SrcPort: 10000,
		DstPort: 4791, Proto: model.UDP,
	}
}

// addQueue adds a queue that is not paused. If it holds anything, it has been
// congested for 100 µs.
func (b *testFabric) addQueue(port string, queued uint64) {
	b.addState(port, queued)
	if queued > 0 {
		b.addEpisode(port, 0, 100*µs, queued)
	}
}

// addState adds the state of a queue that is not paused.
func (b *testFabric) addState(port string, queued uint64) {
	p := b.port(port)
	r := b.reports[p.Node]
	r.Ports = append(r.Ports, epoch.Port{Port: p.Port, Priority: class, Queued: queued, Sent: 1000})
	r.PortEpochs = append(r.PortEpochs, epoch.PortEpoch{Epoch: 9, Port: p.Port, Priority: class, Packets: 100})
}

// addPausedQueue adds a queue that has been paused for a time; atBurstStart is
// what it held when its pauses began.
func (b *testFabric) addPausedQueue(port string, queued, atBurstStart uint64, since time.Duration) *epoch.Pause {
	b.addState(port, queued)
	p := b.port(port)
	r := b.reports[p.Node]
	state := &r.Ports[len(r.Ports)-1]
	state.Paused, state.PauseFrames = true, 3
	r.Pauses = append(r.Pauses, epoch.Pause{
		Port: p.Port, Priority: class, LastStart: now.Add(-since),
		BurstStart: now.Add(-since), BytesAtBurstStart: atBurstStart, Pauses: 1, PausedTime: since,
	})
	return &r.Pauses[len(r.Pauses)-1]
}

// addEpisode adds a congestion episode of a queue that ended, and lasted, for a
// time.
func (b *testFabric) addEpisode(port string, ended, lasted time.Duration, most uint64) {
	p := b.port(port)
	r := b.reports[p.Node]
	to := now.Add(-ended)
	r.Episodes = append(r.Episodes, epoch.CongestionEpisode{
		Port: p.Port, Priority: class, First: to.Add(-lasted),
		Last: to, MaxBytes: most,
	})
}

// addBacklog puts a flow's packets into queues, each of which holds them for
// the one before.
func (b *testFabric) addBacklog(flow string, bytes uint64, ports ...string) {
	key := b.flow(flow)
	in, _, _ := strings.Cut(flow, ">")
	for _, name := range ports {
		p := b.port(name)
		r := b.reports[p.Node]
		from := b.fabric.Node(p.Node).PortsTo(b.id(in))[0]
		held := epoch.PortPairBacklog{In: from, Out: p.Port, Priority: class, Packets: uint32(bytes / kb), Bytes: bytes}
		r.PortPairBacklogs = append(r.PortPairBacklogs, held)
		r.FlowBacklogs = append(r.FlowBacklogs, epoch.FlowBacklog{PortPairBacklog: held, Key: key})
		b.addFlowEpoch(flow, name, 9, uint32(bytes/kb), class)
		in, _, _ = strings.Cut(name, ">")
	}
}

// addFlowEpoch adds a flow's record of one epoch at a port.
func (b *testFabric) addFlowEpoch(flow, port string, number, packets uint32, prio model.Priority) {
	p := b.port(port)
	r := b.reports[p.Node]
	r.Flows = append(r.Flows, epoch.Flow{
		Epoch: number, Out: p.Port, Priority: prio, Key: b.flow(flow), Packets: packets,
		Bytes: uint64(packets) * kb, Last: r.EpochLength - 1,
	})
}

func (b *testFabric) diagnose(victim string) []Verdict {
	b.t.Helper()
	return b.detect(victim, Detection{})
}

// diagnoseInFlight diagnoses a packet that has been on its way for a time.
func (b *testFabric) diagnoseInFlight(victim string, age time.Duration) []Verdict {
	b.t.Helper()
	return b.detect(victim, Detection{Latency: age, InFlight: true})
}

func (b *testFabric) detect(victim string, c Detection) []Verdict {
	b.t.Helper()
	m := b.newAnalysis(victim)
	c.Event, c.Victim = m.evidence.Event, m.g.Victim
	return m.Diagnose(c, m.evidence, m.g)
}

// newAnalysis returns the analysis of a detection before it has started.
func (b *testFabric) newAnalysis(victim string) *analysis {
	b.t.Helper()
	d, err := New(DefaultConfig(b.intent))
	if err != nil {
		b.t.Fatal(err)
	}
	e := &provenance.Evidence{Event: poll.Event{Host: 1, Number: 1}, PolledAt: b.polledAt}
	for _, id := range b.fabric.Switches() {
		if r := b.reports[id]; r != nil {
			e.Reports = append(e.Reports, r)
		}
	}
	c := Detection{Event: e.Event, Victim: b.flow(victim)}
	return &analysis{Diagnoser: d, detection: c, evidence: e, g: provenance.Build(e, c.Victim, b.fabric)}
}

// node returns the index of a queue in the graph.
func (b *testFabric) node(m *analysis, port string) int {
	return m.g.Node(provenance.Queue{Port: b.port(port), Priority: class})
}

// want checks a verdict. Culprits are those named, in any order.
func (b *testFabric) want(v Verdict, a anomaly.Type, c anomaly.RootCause, d anomaly.Detail, initial string, culprits ...string) {
	b.t.Helper()
	n := v.View(b.fabric)
	var names []string
	for _, x := range n.Culprits {
		names = append(names, x.Src+">"+x.Dst)
	}
	slices.Sort(names)
	slices.Sort(culprits)
	var port model.Port
	if initial != "" {
		port = b.port(initial)
	}
	if v.Anomaly != a || v.Cause != c || v.Detail != d || v.Initial != port || !slices.Equal(names, culprits) {
		b.t.Errorf("verdict %v %v %v at %v by %v (%q); want %v %v %v at %s by %v", v.Anomaly, v.Cause, v.Detail, n.Initial,
			names, v.Evidence, a, c, d, initial, culprits)
	}
}

// ring is four switches, h0 and h1 at s0 and so on.
func ring(t testing.TB, reported ...string) *testFabric {
	f, err := topo.Ring(4, 2, topo.DefaultLinks())
	return newTestFabric(t, f, err, reported...)
}

func leafSpine(t testing.TB, reported ...string) *testFabric {
	f, err := topo.LeafSpine(3, 1, 4, topo.DefaultLinks()) // h0-h3 at leaf0, h4-h7, h8-h11
	return newTestFabric(t, f, err, reported...)
}

var all = []string{"leaf0", "leaf1", "leaf2", "spine0"}

// incast: h0 to h3 congest leaf1's port to h4; the victim h8>h5 only shares the
// path there.
func incast(t testing.TB, reported ...string) *testFabric {
	b := leafSpine(t, reported...)
	if b.reports[b.id("leaf1")] != nil {
		b.addQueue("leaf1>h4", 400*kb)
		for _, h := range []string{"h0", "h1", "h2", "h3"} {
			key := b.flow(h + ">h4")
			p := b.port("leaf1>h4")
			r := b.reports[p.Node]
			held := epoch.PortPairBacklog{
				In: b.port("leaf1>spine0").Port, Out: p.Port, Priority: class, Packets: 100,
				Bytes: 100 * kb,
			}
			r.FlowBacklogs = append(r.FlowBacklogs, epoch.FlowBacklog{PortPairBacklog: held, Key: key})
			r.PortPairBacklogs = append(r.PortPairBacklogs, held)
			b.addFlowEpoch(h+">h4", "leaf1>h4", 9, 100, class)
		}
		b.addFlowEpoch("h8>h5", "leaf1>h5", 9, 5, class)
		b.addQueue("leaf1>h5", 0)
	}
	b.addPausedQueue("spine0>leaf1", 200*kb, 5*kb, 20*µs)
	b.addBacklog("h8>h5", 10*kb, "leaf2>spine0", "spine0>leaf1")
	b.addQueue("leaf2>spine0", 10*kb)
	return b
}
