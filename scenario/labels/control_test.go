package labels

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/control/portwatch"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/sim/truth"
	"github.com/weft-telemetry/weft/topo"
)

const us = time.Microsecond

// lab is a fat-tree with traffic of every kind, labelled or not.
type lab struct {
	net   *sim.Network
	truth *truth.Recorder
	ctl   *Control
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newLab makes a fabric. Labels that are due more often than interval get lost
// with the management network's loss; commands get lost with it too.
func newLab(t testing.TB, interval time.Duration, loss float64, flows []traffic.Flow) *lab {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	check(t, err)
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 3})
	check(t, err)
	n, err := sim.New(routes, sim.DefaultConfig())
	check(t, err)
	l := &lab{net: n}
	l.truth, err = truth.Record(n, truth.Options{
		Flows: true, Drops: true, MaxDrops: 1 << 16, Depths: true,
		Paths: true, MaxPathHops: 1 << 16,
	})
	check(t, err)
	if interval > 0 {
		l.label(t, interval, loss)
	}
	check(t, n.AddFlows(flows))
	return l
}

func (l *lab) label(t testing.TB, interval time.Duration, loss float64) {
	programs := map[model.NodeID][]inswitch.Program{}
	for _, id := range l.net.Fabric().Switches() {
		cfg := label.DefaultConfig()
		cfg.Interval, cfg.Seed = interval, uint64(id)
		p, err := label.New(cfg, simhost.Describe(l.net, id, 0))
		check(t, err)
		programs[id] = []inswitch.Program{p}
	}
	tuner := coverage.DefaultTunerConfig(interval)
	cfg := portwatch.Config{
		States: coverage.DefaultConfig(l.net.Fabric()), Window: 2 * interval,
		KeepWindows: 1 << 16, Tuner: &tuner,
	}
	var err error
	l.ctl, err = New(l.net, programs, 0, cfg, Channel{Delay: 50 * us, Loss: loss, Seed: 1})
	check(t, err)
	mgmt := simhost.DefaultManagementConfig()
	mgmt.Loss = loss
	host := simhost.DefaultConfig()
	host.Carrier, err = simhost.NewManagement(l.net, mgmt, l.ctl.ReceiveDatagram)
	check(t, err)
	for _, id := range l.net.Fabric().Switches() {
		_, err := simhost.Attach(l.net, id, inswitch.NewPipeline(programs[id]...), host)
		check(t, err)
	}
}

// everything is RDMA, TCP and UDP of both families between all hosts, at rates
// at which nothing is lost.
func mixedFlows(hosts []model.NodeID) (flows []traffic.Flow) {
	kinds := []traffic.Flow{
		{Priority: 3, Bytes: 300_000},
		{Priority: 3, Bytes: 300_000, V6: true},
		{Priority: 1, Bytes: 100_000, Transport: traffic.TCP},
		{Priority: 1, Bytes: 100_000, Transport: traffic.TCP, V6: true},
		{Bytes: 100_000, Rate: 2 * model.Gbps, Transport: traffic.UDP},
		{Bytes: 100_000, Rate: 2 * model.Gbps, Transport: traffic.UDP, V6: true},
	}
	for i, src := range hosts {
		for j, f := range kinds {
			f.Src, f.Dst = src, hosts[(i+1+2*j)%len(hosts)]
			f.Start = model.Time(1000 + 7919*(i*len(kinds)+j)%200_000)
			flows = append(flows, f)
		}
	}
	return flows
}

// TestEveryActivePortIsReported labels all kinds of traffic: every port that sent
// is known, in every window but the last; nothing of the traffic is lost, sent
// again or forwarded on another path than without labels.
func TestEveryActivePortIsReported(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	check(t, err)
	flows := mixedFlows(f.Hosts())
	const end = 2 * time.Millisecond
	plain, l := newLab(t, 0, 0, flows), newLab(t, 20*us, 0, flows)
	plain.net.Run(engine.Of(end))
	l.net.Run(engine.Of(end))
	for _, port := range l.ctl.ports {
		sent := l.net.Port(port).TxPkts - l.net.Port(port).Peer().PausesReceived
		if _, known := l.ctl.Watch.States().Newest(port); known != (sent > 0) {
			t.Errorf("%s sent %d packets, known: %v", f.PortRef(port), sent, known)
		}
	}
	s := l.ctl.Watch.Stats()
	if s.Labels < 1000 || s.Accepted+s.Older != s.Labels || s.Malformed != 0 || l.ctl.Unexpected != 0 {
		t.Errorf("labels: %+v; want many, all of them accepted", s)
	}
	if got := l.truth.DropTotals(); got != ([truth.Reasons]int64{}) {
		t.Errorf("drops %v; want none", got)
	}
	for id := range flows {
		key, spec := l.net.FlowKey(id)
		with, without := l.truth.Flow(id, false), plain.truth.Flow(id, false)
		if with.Delivered != without.Delivered || with.Payload != without.Payload || with.Payload != spec.Bytes {
			t.Errorf("%v: %d packets, %v with labels; %d, %v without; want the same, and %v", key, with.Delivered,
				with.Payload, without.Delivered, without.Payload, spec.Bytes)
		}
		// A labelled packet on another path would overtake others.
		a, b := l.truth.Paths(id, false), plain.truth.Paths(id, false)
		if len(a) != 1 || len(b) != 1 || !slices.Equal(a[0].Hops, b[0].Hops) {
			t.Errorf("%v: paths %v with labels, %v without; want one and the same", key, a, b)
		}
	}
	records := l.net.Records()
	if len(records) != len(flows) {
		t.Fatalf("%d records; want %d", len(records), len(flows))
	}
	for _, r := range records {
		if !r.Finished || r.Retransmitted != 0 {
			t.Errorf("%v: finished %v, %d bytes sent again; want all, none", r.Key, r.Finished, r.Retransmitted)
		}
	}
}

// TestCongestionAgreesWithTruth lets flows collide: labels name the ports whose
// queues were deep, never deeper than they were.
func TestCongestionAgreesWithTruth(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	check(t, err)
	var flows []traffic.Flow
	for i, src := range f.Hosts()[4:12] {
		flows = append(flows, traffic.Flow{
			Src: src, Dst: f.Hosts()[0], Bytes: model.MB, Priority: 3,
			Start: model.Time(1000 + 100*i),
		})
	}
	l := newLab(t, 2*us, 0, append(flows, mixedFlows(f.Hosts())...))
	const end = 2 * time.Millisecond
	l.net.Run(engine.Of(end))
	peak := func(p model.Port) (deepest model.Bytes) {
		for prio := range model.Priority(8) {
			deepest = max(deepest, l.truth.Peak(p, prio).Bytes)
		}
		return deepest
	}
	const deep = 100 * model.KB
	found := map[model.Port]model.Bytes{}
	for _, c := range l.ctl.Watch.States().CongestedPorts(0, model.Time(end), deep) {
		found[c.Port] = c.Depth
		if real := peak(c.Port); c.Depth > real {
			t.Errorf("%s: a label saw %v; the queue was %v at most", f.PortRef(c.Port), c.Depth, real)
		}
	}
	many := 0
	for _, port := range l.ctl.ports {
		real := peak(port)
		// Between two labels a queue can grow by what its inputs bring.
		if real < deep+20*model.KB {
			continue
		}
		many++
		if got := found[port]; got < real*8/10 {
			t.Errorf("%s: the queue was %v deep, labels saw %v; want at least 80 %% of it", f.PortRef(port), real, got)
		}
	}
	if many < 2 {
		t.Fatalf("%d deep queues; the test tests nothing", many)
	}
}

// TestCommandsSurviveLoss: with a third of reports and commands lost, ports that
// are not heard of in time still get to label more often, and coverage is the
// better for it.
func TestCommandsSurviveLoss(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	check(t, err)
	l := newLab(t, 50*us, 0.34, mixedFlows(f.Hosts()))
	l.net.Run(engine.Of(1500 * us))
	s := l.ctl.Watch.Stats()
	raised := 0
	for _, p := range l.ctl.programs {
		for id := range model.PortID(5) {
			if p.Shift(id) > 0 {
				raised++
			}
		}
	}
	if l.ctl.Lost == 0 || s.Commands <= l.ctl.Lost || raised == 0 {
		t.Errorf("%d commands, %d lost, %d ports raised; want some of each", s.Commands, l.ctl.Lost, raised)
	}
}
