package control

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/flowfindings"
	"github.com/weft-telemetry/weft/control/flowreduce"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/roce"
)

const slotLength = 10 * time.Millisecond

// evidenceBed is a controller that makes evidence of what its watches find, and
// contains none.
func evidenceBed(t *testing.T) *Controller {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	c := &Controller{fabric: f, devices: NoDevices{}, meter: newPortMeter(slotLength, minMeterSlots), actions: map[uint64][]api.Action{}, requested: map[evidenceRequest]model.Time{}, lastVerdict: map[verdictKind]recordedVerdict{}}
	c.cfg.Intent, c.cfg.StallShare, c.cfg.Flows.Slot, c.cfg.BalanceSlots = topo.NewIntent(routes), 0.2, slotLength, 5
	if c.correlator, err = incident.New(incident.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	c.cfg.Reduction = flowreduce.DefaultConfig()
	if c.reducer, err = flowreduce.New(c.cfg.Reduction, c.flowNames()); err != nil {
		t.Fatal(err)
	}
	if c.findings, err = flowfindings.New(flowfindings.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Controller) portNamed(t *testing.T, from, to string) model.Port {
	t.Helper()
	id, _ := c.fabric.ByName(from)
	for _, p := range c.fabric.Node(id).Ports {
		if c.nodeName(p.Peer.Node) == to {
			return model.Port{Node: id, Port: p.ID}
		}
	}
	t.Fatalf("no port from %s to %s", from, to)
	return model.Port{}
}

// TestShortPausesAreANotice: a queue that was congested briefly is a notice,
// unless the ports upstream of it were paused, or their pauses are not counted.
func TestShortPausesAreANotice(t *testing.T) {
	for name, tc := range map[string]struct {
		counted bool
		paused  time.Duration
		want    anomaly.Severity
	}{
		"a moment":          {true, 900 * time.Microsecond, anomaly.Notice},
		"a fifth of a slot": {true, 2 * time.Millisecond, anomaly.Warning},
		"nobody counts":     {false, 0, anomaly.Warning},
	} {
		t.Run(name, func(t *testing.T) {
			c := evidenceBed(t)
			initial, behind := c.portNamed(t, "leaf0", "tor0"), c.portNamed(t, "spine0", "leaf0")
			at := model.Time(95 * time.Millisecond)
			if tc.counted {
				for _, p := range []model.Port{initial, behind} {
					c.meter.ports[p] = &meteredPort{}
				}
				c.meter.addCounters(at.Add(-5*time.Millisecond), at, behind, tc.paused, 0)
			}
			c.now = at.Add(13 * time.Millisecond)
			c.recordVerdicts([]diagnose.Verdict{{
				Anomaly: anomaly.PFCBackpressure, Cause: anomaly.ContendingFlows, Detail: anomaly.PriorityTraffic, Initial: initial,
				Path: []model.Port{behind, initial}, Confidence: 0.9, At: at,
			}})
			open := c.correlator.OpenIncidents()
			if len(open) != 1 || open[0].Cause != anomaly.Incast || open[0].Severity() != tc.want {
				t.Errorf("%d incidents, the first %v, %v; want one incast, %v", len(open), open[0].Cause, open[0].Severity(), tc.want)
			}
		})
	}
}

// TestSwitchesThatHashAlikeAreOneIncident, save one that a wrong route loads.
func TestSwitchesThatHashAlikeAreOneIncident(t *testing.T) {
	c := evidenceBed(t)
	c.now = model.Time(60 * time.Millisecond)
	detour := c.portNamed(t, "leaf3", "tor3")
	c.addEvidence(incident.Evidence{At: c.now, From: c.now, Cause: anomaly.WrongRoute, Confirmed: true, Location: detour})
	var list []load.Imbalance
	for i, name := range []string{"leaf0", "leaf3", "leaf4", "leaf6"} {
		id, _ := c.fabric.ByName(name)
		list = append(list, load.Imbalance{Switch: id, Ports: []load.Share{{Port: 3, Flows: 10}, {Port: 4, Flows: 90}}, Ratio: 1.5 + 0.1*float64(i), Cause: load.Hash})
	}
	list[3].Cause = load.Burst // large flows, no fault
	c.addImbalanceEvidence(list, model.Time(5*slotLength))
	open := c.correlator.OpenIncidents()
	if len(open) != 2 || open[0].Cause != anomaly.WrongRoute || open[1].Cause != anomaly.Imbalance {
		t.Fatalf("%d incidents; want the wrong route and the hashes", len(open))
	}
	if in := open[1]; len(in.Nodes) != 2 || c.nodeName(in.Location.Node) != "leaf4" || !strings.HasPrefix(in.Text, "ECMP imbalance at 2 switches, worst at leaf4: ") {
		t.Errorf("%d switches at %s: %s; want leaf0 and leaf4, which is worst", len(in.Nodes), c.nodeName(in.Location.Node), in.Text)
	}
}

// TestOneUnevenSwitchIsConfirmedByASecondWindow: one of many is uneven by chance.
func TestOneUnevenSwitchIsConfirmedByASecondWindow(t *testing.T) {
	c := evidenceBed(t)
	id, _ := c.fabric.ByName("leaf3")
	list := []load.Imbalance{{Switch: id, Ports: []load.Share{{Port: 3, Flows: 30}, {Port: 4, Flows: 4}}, Ratio: 1.9, Cause: load.Hash}}
	for window, want := range []int{0, 1} {
		c.now = model.Time(2*(window+1)) * model.Time(slotLength)
		if c.addImbalanceEvidence(list, c.now); len(c.correlator.OpenIncidents()) != want {
			t.Errorf("%d incidents after %d windows; want %d", len(c.correlator.OpenIncidents()), window+1, want)
		}
	}
}

// TestCyclesSeenOnceOpenNothing: a deadlock is a cycle that a second snapshot finds
// without progress.
func TestCyclesSeenOnceOpenNothing(t *testing.T) {
	c := evidenceBed(t)
	port := c.portNamed(t, "leaf4", "tor4")
	for want, persistent := range []bool{false, true} {
		v := diagnose.Verdict{Initial: port, DeadlockCycle: []model.Port{port}, Persistent: persistent, Confidence: 1, Anomaly: anomaly.DeadlockInLoop}
		if c.addEvidence(c.verdictEvidence("d1", &v)); len(c.correlator.OpenIncidents()) != want {
			t.Errorf("persistent %v: %d incidents; want %d", persistent, len(c.correlator.OpenIncidents()), want)
		}
	}
}

// TestDetourIsNoLoop: a packet that was in flight while wrong routes were put
// right passed a switch twice. A deadlock that those routes made stays one.
func TestDetourIsNoLoop(t *testing.T) {
	c := evidenceBed(t)
	leaf := c.portNamed(t, "leaf4", "tor4")
	ms := model.Time(time.Millisecond)
	c.now = 30 * ms
	in := c.addEvidence(incident.Evidence{At: c.now, From: 10 * ms, Source: anomaly.Epochs, Cause: anomaly.Deadlock, Confirmed: true, Location: leaf})
	round := []model.NodeID{leaf.Node, c.fabric.Port(leaf).Peer.Node}
	f := trace.Finding{Kind: trace.Loop, Switch: leaf.Node, Switches: round, Ended: 1, Packets: 1, Escaped: 1}
	c.now = 50 * ms
	c.addTraceEvidence(40*ms, 50*ms, f)
	if in.Cause != anomaly.Deadlock || in.Sources[anomaly.Traces] != 1 {
		t.Errorf("%v after a detour, %d statements of traces; want the deadlock and one", in.Cause, in.Sources[anomaly.Traces])
	}
	f.Ended, f.Packets = 2, 2
	if c.addTraceEvidence(40*ms, 50*ms, f); in.Cause != anomaly.Loop {
		t.Errorf("%v after a packet that did not come out; want a loop", in.Cause)
	}
}

// TestTimelineNamesEveryAction in order, with what is only suspected: what was learned
// stands at the time at which it was known, not at that of the question.
func TestTimelineNamesEveryAction(t *testing.T) {
	c := evidenceBed(t)
	ms := model.Time(time.Millisecond)
	in := c.correlator.AddEvidence(incident.Evidence{At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Blackhole, Confirmed: true, Text: "flows end"})
	c.correlator.AddEvidence(incident.Evidence{At: 40 * ms, From: 10 * ms, Source: anomaly.Probes, Cause: anomaly.Blackhole, Text: "probes are lost"})
	c.actions[in.ID] = []api.Action{
		{Time: c.wallTime(21 * ms), Kind: "probe", Target: "a flow"}, {Time: c.wallTime(21 * ms), Kind: "poll", Target: "a flow"},
	}
	c.now = 45 * ms
	c.setOutcome(in.ID, "probe", "blackhole")
	b := c.incidentBody(in)
	want := []string{
		"flows end", "sent probes like a flow", "polled the switches about a flow", "perhaps probes are lost", "probes like a flow: blackhole",
	}
	if len(b.Timeline) != len(want) {
		t.Fatalf("timeline %+v; want %q", b.Timeline, want)
	}
	for i := range want {
		if b.Timeline[i].Text != want[i] {
			t.Errorf("line %d: %q; want %q", i, b.Timeline[i].Text, want[i])
		}
	}
}

// TestFlowsThatStandJoinTheStorm that pauses their port from hops away: counters
// of the ports between tell.
func TestFlowsThatStandJoinTheStorm(t *testing.T) {
	c := evidenceBed(t)
	ms := model.Time(time.Millisecond)
	c.now = 29 * ms
	way := []model.Port{c.portNamed(t, "tor6", "h12"), c.portNamed(t, "leaf7", "tor6"), c.portNamed(t, "spine2", "leaf7"), c.portNamed(t, "leaf1", "spine2"), c.portNamed(t, "tor0", "leaf1")}
	host := c.fabric.Port(way[0]).Peer.Node
	c.addEvidence(incident.Evidence{At: 20 * ms, From: 10 * ms, Source: anomaly.Epochs, Cause: anomaly.Storm, Confirmed: true, Location: model.Port{Node: host}, Extent: []model.NodeID{way[0].Node}})
	for _, p := range way {
		c.meter.addCounters(8*ms, 18*ms, p, 9*time.Millisecond, 0)
	}
	far := way[len(way)-1]
	stands := paths.Finding{Kind: paths.BlackHole, Slot: 1, Confirmed: true, At: far, Flows: []model.FlowKey{{Proto: model.UDP, DstPort: roce.Port}}}
	c.processSlot(&flowwatch.Slot{Index: 1, Length: slotLength, Paths: []paths.Finding{stands}})
	open := c.correlator.OpenIncidents()
	if len(open) != 1 || open[0].Cause != anomaly.Storm || open[0].Sources[anomaly.Counters] != len(way) || open[0].Sources[anomaly.Flowsets] != 1 {
		t.Errorf("%d incidents, the first %v by %v; want one storm, by counters of %d ports and a flow that stands", len(open), open[0].Cause, open[0].Sources, len(way))
	}
	if changed := c.correlator.TakeChanged(); len(changed) != 1 {
		t.Errorf("%d incidents were told of; want the storm alone", len(changed))
	}
	if log := c.findings.Find(c.wallTime(0), c.wallTime(c.now)).Paths; len(log) != 1 || !log[0].Stalled || log[0].Kind != "blackhole" {
		t.Errorf("path findings %+v; want one, stalled", log)
	}
}

// TestStopBeforeABlackHoleIsTheSameFault: of some flows a switch's counters do not tell whether
// they arrived there. That they were last seen one switch before it is no second black hole,
// whichever is known first.
func TestStopBeforeABlackHoleIsTheSameFault(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		c := evidenceBed(t)
		before := c.portNamed(t, "spine3", "leaf7")
		leaf := model.Port{Node: c.fabric.Port(before).Peer.Node}
		to := func(port uint16) model.FlowKey {
			return model.FlowKey{Src: model.Addr4(0x0a000002), Dst: model.Addr4(0x0a030003), SrcPort: port, DstPort: roce.Port, Proto: model.UDP}
		}
		findings := []paths.Finding{
			{Kind: paths.BlackHole, Slot: 1, Confirmed: true, At: leaf, Flows: []model.FlowKey{to(1)}},
			{Kind: paths.BlackHole, Slot: 1, Confirmed: true, At: before, Flows: []model.FlowKey{to(2), to(3)}, Others: 12},
		}
		c.now = model.Time(30 * time.Millisecond)
		for _, i := range order {
			c.addPathEvidence(&findings[i], flowwatch.NewSlot(1, slotLength))
		}
		open := c.correlator.OpenIncidents()
		if len(open) != 1 || open[0].Cause != anomaly.Blackhole || open[0].Location != leaf || len(open[0].Flows) != 3 {
			t.Errorf("order %v: %d incidents, the first %v at %s: %s; want one black hole of 3 flows at leaf7", order, len(open), open[0].Cause, c.fabric.PortRef(open[0].Location), open[0].Text)
		}
	}
}

// TestPacketsThatStoodAreNotLost: traces that end at a switch whose port was
// paused until just before, by a storm that is over.
func TestPacketsThatStoodAreNotLost(t *testing.T) {
	c := evidenceBed(t)
	c.cfg.Traces.Window, c.cfg.Traces.Period = 2, slotLength
	ms := model.Time(time.Millisecond)
	port := c.portNamed(t, "tor2", "leaf2")
	f := trace.Finding{Kind: trace.Drop, Switch: port.Node, Ended: 4, Packets: 139}
	c.meter.addCounters(590*ms, 599*ms, port, 9*time.Millisecond, 0)
	c.now = 612 * ms
	if c.addTraceEvidence(600*ms, 610*ms, f); len(c.correlator.OpenIncidents()) != 0 {
		t.Errorf("%v of packets that stood until 2 ms before; want nothing", c.correlator.OpenIncidents()[0].Cause)
	}
	c.now = 712 * ms
	if c.addTraceEvidence(700*ms, 710*ms, f); len(c.correlator.OpenIncidents()) != 1 || c.correlator.OpenIncidents()[0].Cause != anomaly.Loss {
		t.Errorf("%d incidents of packets that end where nothing stood; want a loss", len(c.correlator.OpenIncidents()))
	}
}

// TestPauseOverTheEndOfASlot: a pause that ends in the slot after the one in which it began
// holds packets as long as another, though each slot has only a part of it.
func TestPauseOverTheEndOfASlot(t *testing.T) {
	ms := model.Time(time.Millisecond)
	for _, began := range []model.Time{601 * ms, 608*ms + ms/2, 609 * ms} {
		c := evidenceBed(t)
		c.cfg.Traces.Window, c.cfg.Traces.Period = 2, slotLength
		port := c.portNamed(t, "tor2", "leaf2")
		for at := began; at < began+5*ms/2; at += ms / 2 {
			c.meter.addCounters(at, at+ms/2, port, 500*time.Microsecond, 0)
		}
		c.now = 622 * ms
		c.addTraceEvidence(610*ms, 620*ms, trace.Finding{Kind: trace.Drop, Switch: port.Node, Ended: 4, Packets: 26})
		if open := c.correlator.OpenIncidents(); len(open) != 0 {
			t.Errorf("%d incidents of packets held for 2.5 ms from %v on; want none", len(open), began)
		}
	}
}

// TestPacketsThatAnOpenPortOwesAreLost: a port that was paused for a part of a slot has
// sent what it held by the end of the next but one.
func TestPacketsThatAnOpenPortOwesAreLost(t *testing.T) {
	ms := model.Time(time.Millisecond)
	for name, tc := range map[string]struct {
		paused time.Duration // from 85 ms on
		want   anomaly.Cause
	}{
		"still paused": {15 * time.Millisecond, anomaly.Stall},
		"open since":   {2 * time.Millisecond, anomaly.Loss},
	} {
		t.Run(name, func(t *testing.T) {
			c := evidenceBed(t)
			c.cfg.LossPackets, c.cfg.LossShare, c.now = 3, 1e-3, 129*ms
			port := c.portNamed(t, "leaf5", "spine2")
			c.meter.addCounters(85*ms, 85*ms+model.Time(tc.paused), port, tc.paused, 0)
			flow := model.FlowKey{DstPort: roce.Port, Proto: model.UDP}
			s := flowwatch.NewSlot(10, slotLength)
			s.Losses = []loss.Event{{Flow: flow, Segment: loss.Segment{From: port, To: c.fabric.Port(port).Peer}, Packets: 45, Sent: 884, FirstSlot: 7, LastSlot: 8}}
			c.addLossEvidence(s)
			if open := c.correlator.OpenIncidents(); len(open) != 1 || open[0].Cause != tc.want {
				t.Errorf("%+v; want one incident, %v", open, tc.want)
			}
		})
	}
}

// TestIncidentShowsWhatMadeItsCause: the first diagnosis, the quoted evidence and the
// culprits are those of the cause, not of what was found before it.
func TestIncidentShowsWhatMadeItsCause(t *testing.T) {
	c := evidenceBed(t)
	ms := model.Time(time.Millisecond)
	host, _ := c.fabric.ByName("h14")
	at := c.switchPort(model.Port{Node: host})
	victim := model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2), Proto: model.UDP, DstPort: roce.Port}
	in := c.addEvidence(incident.Evidence{
		At: 20 * ms, From: 19 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Location: at, Flows: []model.FlowKey{victim},
		Culprits: []model.FlowKey{victim}, Text: "a queue is congested", Ref: "d1",
	})
	if got := c.addEvidence(incident.Evidence{
		At: 22 * ms, From: 19 * ms, Source: anomaly.Epochs, Cause: anomaly.Storm, Confirmed: true, Location: model.Port{Node: host},
		Extent: []model.NodeID{at.Node}, Flows: []model.FlowKey{victim}, Text: "h14 sends pauses", Ref: "d2",
	}); got != in {
		t.Fatalf("the storm is incident %d; want %d", got.ID, in.ID)
	}
	b := c.incidentBody(in)
	if len(b.Diagnoses) != 2 || b.Diagnoses[0] != "d2" {
		t.Errorf("diagnoses %v; want that of the storm first", b.Diagnoses)
	}
	if len(b.Evidence) != 1 || b.Evidence[0].Text != "h14 sends pauses" || len(b.Culprits) != 0 {
		t.Errorf("evidence %+v, culprits %+v; want that of the storm, and none", b.Evidence, b.Culprits)
	}
}
