package incident

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

const ms = model.Time(time.Millisecond)

func flow(n int) model.FlowKey {
	return model.FlowKey{Src: model.Addr4(uint32(n)), Dst: model.Addr4(99), Proto: model.UDP}
}

func at(node model.NodeID, port model.PortID) model.Port { return model.Port{Node: node, Port: port} }

func newCorrelator(t rapid.TB) *Correlator {
	c, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBlackholeIsOneIncident: three sources report one location. The cause that the
// counters suspect is confirmed, and no source is missing in the end.
func TestBlackholeIsOneIncident(t *testing.T) {
	c := newCorrelator(t)
	flows := []model.FlowKey{flow(1), flow(2)}
	in := c.AddEvidence(Evidence{
		At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Blackhole,
		Location: at(4, 2), Flows: flows,
	})
	if got := in.MissingSources(); !slices.Equal(got, []anomaly.Source{anomaly.Traces, anomaly.Probes}) {
		t.Errorf("missing %v, want traces and probes", got)
	}
	c.AddEvidence(Evidence{
		At: 25 * ms, From: 12 * ms, Source: anomaly.Traces, Cause: anomaly.Loss, Confirmed: true,
		Location: at(4, 0), Flows: flows[:1],
	})
	c.AddEvidence(Evidence{
		At: 40 * ms, From: 12 * ms, Source: anomaly.Probes, Cause: anomaly.Blackhole, Confirmed: true,
		Location: at(4, 2), Flows: flows[:1], Text: "persistent",
	})
	if open := c.OpenIncidents(); len(open) != 1 {
		t.Fatalf("%d incidents, want one", len(open))
	}
	if in.Cause != anomaly.Blackhole || !in.Confirmed || in.Text != "persistent" || len(in.MissingSources()) != 0 ||
		in.Begin != 10*ms {
		t.Errorf("incident %+v; want a confirmed black hole since 10 ms with no source missing", in)
	}
}

// TestConsequencesJoinTheirCause lets a loop fill queues and drop packets.
func TestConsequencesJoinTheirCause(t *testing.T) {
	c := newCorrelator(t)
	c.AddEvidence(Evidence{
		At: 11 * ms, From: 10 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true,
		Location: at(5, 1), Extent: []model.NodeID{5, 6},
	})
	c.AddEvidence(Evidence{
		At: 14 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true,
		Location: at(7, 1), Flows: []model.FlowKey{flow(3)},
	})
	if len(c.OpenIncidents()) != 2 {
		t.Fatalf("%d incidents, want two as long as nothing connects them", len(c.OpenIncidents()))
	}
	in := c.AddEvidence(Evidence{
		At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loop,
		Confirmed: true, Location: at(6, 2), Extent: []model.NodeID{6, 7}, Flows: []model.FlowKey{flow(3)},
	})
	if len(c.OpenIncidents()) != 1 || in.Cause != anomaly.Loop || in.Location != at(6, 2) {
		t.Errorf("%d incidents, the last %v at %v; want one loop at 6:2", len(c.OpenIncidents()), in.Cause, in.Location)
	}
	changed := c.TakeChanged()
	if len(changed) != 2 || changed[1].MergedInto != in.ID || !changed[1].Closed || !slices.Equal(in.Parts, []uint64{changed[1].ID}) {
		t.Errorf("changed %+v; want the younger one closed as part of the older", changed)
	}
}

// TestContinuingEvidenceIsNotNew: packets that take a wrong route are lost on the
// intended one, before the deadlock cycle that they close is known and after.
func TestContinuingEvidenceIsNotNew(t *testing.T) {
	c := newCorrelator(t)
	in := c.AddEvidence(Evidence{
		At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.WrongRoute,
		Confirmed: true, Location: at(6, 3), Flows: []model.FlowKey{flow(3)},
	})
	lost := Evidence{
		At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true,
		Location: at(6, 4), Flows: []model.FlowKey{flow(3)},
	}
	c.AddEvidence(lost)
	c.AddEvidence(Evidence{
		At: 25 * ms, From: 10 * ms, Source: anomaly.Epochs, Cause: anomaly.Deadlock, Confirmed: true,
		Location: at(6, 3), Extent: []model.NodeID{6, 7},
	})
	lost.At = 30 * ms
	if again := c.AddEvidence(lost); again != in || in.Cause != anomaly.Deadlock || len(c.OpenIncidents()) != 1 {
		t.Errorf("the same loss as before opens %+v; want it in the deadlock's incident", again)
	}
	lost.Location = at(6, 2)
	if c.AddEvidence(lost) == in {
		t.Error("a loss elsewhere joins the deadlock: its links do not lose packets")
	}
}

// TestBurstsAreOneIncident: a fault that shows for 10 ms of every 100 is one incident for as
// long as no quiet period passes; another place, or another cause there, is another fault.
func TestBurstsAreOneIncident(t *testing.T) {
	for _, cause := range []anomaly.Cause{anomaly.Incast, anomaly.Storm, anomaly.Loss, anomaly.Blackhole} {
		c := newCorrelator(t)
		burst := func(from model.Time, place model.Port, cause anomaly.Cause) *Incident {
			return c.AddEvidence(Evidence{
				At: from + 10*ms, From: from, Source: anomaly.Flowsets, Cause: cause, Confirmed: true, Location: place,
			})
		}
		first := burst(0, at(4, 2), cause)
		for from := 100 * ms; from < 1000*ms; from += 100 * ms {
			c.CloseQuiet(from)
			if in := burst(from, at(4, 2), cause); in != first {
				t.Fatalf("%v at %v: incident %d, want %d to continue", cause, from, in.ID, first.ID)
			}
		}
		if burst(1000*ms, at(7, 2), cause) == first {
			t.Errorf("%v elsewhere joins the incident", cause)
		}
		if burst(1000*ms, at(4, 2), anomaly.Loop) == first {
			t.Errorf("a loop 90 ms after %v is the same fault", cause)
		}
		c.CloseQuiet(1300 * ms)
		if burst(1300*ms, at(4, 2), cause) == first {
			t.Errorf("%v continues after its quiet period", cause)
		}
	}
}

// TestCollectorBehindTheSwitches: the clock of a collector is two seconds behind the reports
// that it reads. A fault that lasts is one incident all the same, and ends after it begins.
func TestCollectorBehindTheSwitches(t *testing.T) {
	const behind = 2000 * ms
	c := newCorrelator(t)
	var first *Incident
	for now := 10 * ms; now < 500*ms; now += 10 * ms {
		in := c.AddEvidence(Evidence{
			At: now, From: now + behind, Source: anomaly.Flowsets, Cause: anomaly.Blackhole, Confirmed: true, Location: at(4, 2),
		})
		if first == nil {
			first = in
		}
		c.CloseQuiet(now)
		if in != first || in.Closed || in.Last < in.Begin {
			t.Fatalf("at %v: incident %d from %v to %v, closed: %v; want one, that is open", now, in.ID, in.Begin, in.Last, in.Closed)
		}
	}
}

func TestUnrelatedStayApart(t *testing.T) {
	for name, pair := range map[string][2]Evidence{
		"two locations": {
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Loss, Location: at(1, 1), Flows: []model.FlowKey{flow(1)}},
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Loss, Location: at(2, 1), Flows: []model.FlowKey{flow(2)}},
		},
		"two times": {
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Loss, Location: at(1, 1)},
			{At: 90 * ms, From: 90 * ms, Cause: anomaly.Loss, Location: at(1, 1)},
		},
		"load and loss": {
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Imbalance, Location: at(1, 1)},
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Blackhole, Location: at(1, 1)},
		},
		"a storm, and an unconfirmed loop": {
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Storm, Confirmed: true, Location: at(1, 1)},
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Loop, Location: at(1, 1)},
		},
		"two queues": {
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Contention, Location: at(1, 1), Flows: []model.FlowKey{flow(1)}},
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Contention, Location: at(1, 2), Flows: []model.FlowKey{flow(1)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCorrelator(t)
			c.AddEvidence(pair[0])
			c.AddEvidence(pair[1])
			if len(c.OpenIncidents()) != 2 {
				t.Errorf("%d incidents, want two", len(c.OpenIncidents()))
			}
		})
	}
}

// TestImbalanceIsFabricWide: switches with the same hash function are one fault.
func TestImbalanceIsFabricWide(t *testing.T) {
	c := newCorrelator(t)
	c.AddEvidence(Evidence{
		At: 60 * ms, From: 50 * ms, Cause: anomaly.Imbalance, Confirmed: true, Location: at(1, 0),
		Text: "worst",
	})
	in := c.AddEvidence(Evidence{
		At: 110 * ms, From: 100 * ms, Cause: anomaly.Imbalance, Confirmed: true,
		Location: at(2, 0),
	})
	if len(c.OpenIncidents()) != 1 || !slices.Equal(in.Nodes, []model.NodeID{1, 2}) || in.Text != "worst" {
		t.Errorf("%d incidents, the last at %v: %q; want one at both switches", len(c.OpenIncidents()), in.Nodes, in.Text)
	}
}

// TestLaterFaultAbsorbsNothing is a fabric whose queues are busy all the time, with
// two faults one after the other. Evidence at a node that all three affect belongs
// to the newest fault, and each keeps its cause.
func TestLaterFaultAbsorbsNothing(t *testing.T) {
	c := newCorrelator(t)
	busy := c.AddEvidence(Evidence{
		At: 10 * ms, From: 5 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast,
		Confirmed: true, Minor: true, Location: at(1, 1), Extent: []model.NodeID{2, 3},
	})
	for now := 20 * ms; now < 300*ms; now += 20 * ms {
		c.AddEvidence(Evidence{
			At: now, From: now, Source: anomaly.Epochs, Cause: anomaly.Contention, Confirmed: true,
			Location: at(1, 1),
		})
	}
	storm := c.AddEvidence(Evidence{
		At: 110 * ms, From: 100 * ms, Source: anomaly.Epochs, Cause: anomaly.Storm,
		Confirmed: true, Location: at(9, 0), Extent: []model.NodeID{2},
	})
	loop := c.AddEvidence(Evidence{
		At: 220 * ms, From: 210 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loop,
		Confirmed: true, Location: at(2, 0), Extent: []model.NodeID{2, 4},
	})
	if got := c.AddEvidence(Evidence{
		At: 230 * ms, From: 220 * ms, Source: anomaly.Flowsets, Cause: anomaly.Stall,
		Confirmed: true, Location: at(2, 1),
	}); got != loop {
		t.Errorf("stuck packets belong to %v; want the loop", got.Cause)
	}
	if got := [...]anomaly.Cause{busy.Cause, storm.Cause, loop.Cause}; got != [...]anomaly.Cause{
		anomaly.Incast,
		anomaly.Storm, anomaly.Loop,
	} || len(c.OpenIncidents()) != 3 {
		t.Errorf("%v in %d open incidents; want incast, storm and loop in three", got, len(c.OpenIncidents()))
	}
}

// TestMinorIncidentIsANotice until evidence shows that it has an impact.
func TestMinorIncidentIsANotice(t *testing.T) {
	c := newCorrelator(t)
	in := c.AddEvidence(Evidence{
		At: 10 * ms, From: 10 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast,
		Confirmed: true, Minor: true, Location: at(1, 1),
	})
	c.AddEvidence(Evidence{
		At: 11 * ms, From: 10 * ms, Source: anomaly.Labels, Cause: anomaly.Contention,
		Confirmed: true, Location: at(1, 1),
	})
	if in.Severity() != anomaly.Notice {
		t.Errorf("%v of an incast without impact; want notice", in.Severity())
	}
	c.AddEvidence(Evidence{
		At: 20 * ms, From: 10 * ms, Source: anomaly.Counters, Cause: anomaly.Stall, Confirmed: true,
		Location: at(1, 2),
	})
	if in.Severity() != anomaly.Warning || in.Cause != anomaly.Incast {
		t.Errorf("%v, %v once a port was paused for long; want a warning of an incast", in.Severity(), in.Cause)
	}
	c.AddEvidence(Evidence{
		At: 50 * ms, From: 40 * ms, Source: anomaly.Epochs, Cause: anomaly.Storm, Confirmed: true,
		Location: at(9, 0), Extent: []model.NodeID{1},
	})
	if in.Cause != anomaly.Storm || in.Begin != 10*ms {
		t.Errorf("%v since %v; want a storm since 10 ms, when ports were first paused for long", in.Cause, in.Begin)
	}
}

// TestBackgroundIsNotTheStart of a later fault at the same location.
func TestBackgroundIsNotTheStart(t *testing.T) {
	c := newCorrelator(t)
	c.AddEvidence(Evidence{
		At: 10 * ms, From: 5 * ms, Source: anomaly.Epochs, Cause: anomaly.Contention, Confirmed: true,
		Location: at(1, 1),
	})
	in := c.AddEvidence(Evidence{
		At: 60 * ms, From: 50 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast,
		Confirmed: true, Location: at(1, 2),
	})
	c.AddEvidence(Evidence{
		At: 70 * ms, From: 40 * ms, Source: anomaly.Flowsets, Cause: anomaly.Contention,
		Confirmed: true, Location: at(1, 2),
	})
	if in.Begin != 50*ms || len(c.OpenIncidents()) != 1 {
		t.Errorf("%d incidents, the last since %v; want one since 50 ms", len(c.OpenIncidents()), in.Begin)
	}
}

// TestNoEvidenceIsLost adds random evidence: each piece is counted in exactly one
// incident, whatever merges, and incidents are closed when they are quiet.
func TestNoEvidenceIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.MaxOpen = rapid.IntRange(1, 6).Draw(t, "open")
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		now, added := model.Time(0), 0
		total := map[uint64]int{}
		note := func() {
			for _, in := range c.TakeChanged() {
				n := 0
				for _, count := range in.Sources {
					n += count
				}
				if n != len(in.Timeline)+in.Omitted {
					t.Fatalf("incident %d: %d pieces of evidence by source, %d shown and %d not", in.ID, n, len(in.Timeline),
						in.Omitted)
				}
				if !slices.IsSortedFunc(in.Timeline, func(a, b Evidence) int { return int(a.At - b.At) }) {
					t.Fatalf("timeline of %d is out of order", in.ID)
				}
				if in.MergedInto != 0 {
					n = 0
				}
				total[in.ID] = n
			}
		}
		for range rapid.IntRange(0, 200).Draw(t, "evidence") {
			now += model.Time(rapid.IntRange(0, 20).Draw(t, "pause")) * ms
			c.CloseQuiet(now)
			e := Evidence{
				At: now, From: now, Confirmed: rapid.Bool().Draw(t, "sure"),
				Source:   anomaly.Source(rapid.IntRange(0, int(anomaly.NumSources)-1).Draw(t, "source")),
				Cause:    anomaly.Cause(rapid.IntRange(0, int(anomaly.NumCauses)-1).Draw(t, "cause")),
				Location: at(model.NodeID(rapid.IntRange(0, 9).Draw(t, "node")), 1),
				Flows:    []model.FlowKey{flow(rapid.IntRange(0, 9).Draw(t, "flow"))},
			}
			c.AddEvidence(e)
			added++
			if rapid.Bool().Draw(t, "check") {
				note()
			}
		}
		c.CloseQuiet(now.Add(cfg.QuietPeriod + 1))
		note()
		if len(c.OpenIncidents()) != 0 {
			t.Fatalf("%d incidents open after a long quiet", len(c.OpenIncidents()))
		}
		sum := 0
		for _, n := range total {
			sum += n
		}
		if sum != added {
			t.Fatalf("%d pieces of evidence in all incidents, %d were added", sum, added)
		}
	})
}

// TestTwoRootsStayApart: a storm, a loop and a black hole within 22 ms, whose pauses
// reach the same switch. Each keeps its cause, place and remedy, and the two that
// share a consequence name each other.
func TestTwoRootsStayApart(t *testing.T) {
	c := newCorrelator(t)
	storm := c.AddEvidence(Evidence{
		At: 10 * ms, From: 5 * ms, Source: anomaly.Epochs, Cause: anomaly.Storm, Confirmed: true,
		Location: at(14, 0), Extent: []model.NodeID{20, 21}, Remedy: "take 14 out",
	})
	toward := func(src, dst int) model.FlowKey {
		return model.FlowKey{Src: model.Addr4(uint32(src)), Dst: model.Addr4(uint32(dst)), Proto: model.UDP}
	}
	loop := c.AddEvidence(Evidence{
		At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loop, Confirmed: true,
		Location: at(21, 0), Extent: []model.NodeID{21, 22}, Flows: []model.FlowKey{toward(1, 7)},
	})
	hole := c.AddEvidence(Evidence{
		At: 32 * ms, From: 20 * ms, Source: anomaly.Flowsets, Cause: anomaly.Blackhole, Confirmed: true,
		Location: at(23, 0), Flows: []model.FlowKey{toward(1, 8), toward(2, 8)},
	})
	if got := c.AddEvidence(Evidence{
		At: 33 * ms, From: 20 * ms, Source: anomaly.Counters, Cause: anomaly.Stall, Confirmed: true, Location: at(21, 3),
	}); got != loop {
		t.Errorf("a stall that both may lead to belongs to %v; want the loop", got.Cause)
	}
	if got := c.AddEvidence(Evidence{
		At: 34 * ms, From: 24 * ms, Source: anomaly.Counters, Cause: anomaly.Stall, Confirmed: true, Location: at(21, 4), NextHop: 14, HasNextHop: true,
	}); got != storm || storm.Last != 34*ms {
		t.Errorf("a stall at the port that the host pauses belongs to %v; want the storm, which continues", got.Cause)
	}
	if got := c.AddEvidence(Evidence{
		At: 33 * ms, From: 20 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true,
		Location: at(25, 1), Flows: []model.FlowKey{toward(3, 7)},
	}); got != loop {
		t.Errorf("packets to the loop's destination are lost by %v; want the loop", got.Cause)
	}
	if len(c.OpenIncidents()) != 3 || storm.Cause != anomaly.Storm || storm.Remedy != "take 14 out" || hole.Cause != anomaly.Blackhole {
		t.Fatalf("%d incidents, %v and %v; want a storm, a loop and a black hole", len(c.OpenIncidents()), storm.Cause, hole.Cause)
	}
	if !slices.Equal(storm.Related, []uint64{loop.ID}) || !slices.Equal(loop.Related, []uint64{storm.ID}) || hole.Related != nil {
		t.Errorf("related %v, %v and %v; want storm and loop to name each other", storm.Related, loop.Related, hole.Related)
	}
}

// TestBlackHoleBesideALoop: both hit packets to one host. The loop's switches drop packets
// whose TTL runs out, not switches elsewhere.
func TestBlackHoleBesideALoop(t *testing.T) {
	c := newCorrelator(t)
	loop := c.AddEvidence(Evidence{
		At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loop, Confirmed: true,
		Location: at(21, 0), Extent: []model.NodeID{21, 22}, Flows: []model.FlowKey{flow(1)},
	})
	hole := Evidence{
		At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Blackhole, Confirmed: true,
		Location: at(22, 0), Flows: []model.FlowKey{flow(1)},
	}
	if got := c.AddEvidence(hole); got != loop {
		t.Errorf("packets dropped in the loop are %v; want the loop", got.Cause)
	}
	hole.Location = at(23, 0)
	if got := c.AddEvidence(hole); got.Cause != anomaly.Blackhole || len(c.OpenIncidents()) != 2 {
		t.Errorf("packets dropped beside the loop are %v, %d incidents; want a black hole of its own", got.Cause, len(c.OpenIncidents()))
	}
}

// TestIncastHasThePlaceOfItsReceiver: PFC is first seen to spread from a port on the
// path; then the port of the receiver is congested. Senders are those of both. An
// incast of another receiver is another incident.
func TestIncastHasThePlaceOfItsReceiver(t *testing.T) {
	c := newCorrelator(t)
	in := c.AddEvidence(Evidence{
		At: 10 * ms, From: 5 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Location: at(3, 1),
		Extent: []model.NodeID{3, 2}, Receiver: 40, HasReceiver: true, Culprits: []model.FlowKey{flow(1), flow(2)}, Scale: 4,
	})
	c.AddEvidence(Evidence{
		At: 11 * ms, From: 5 * ms, Source: anomaly.Epochs, Cause: anomaly.Contention, Confirmed: true, Location: at(2, 1),
		Receiver: 40, HasReceiver: true, AtReceiver: true, Culprits: []model.FlowKey{flow(3), flow(4)}, Text: "at the receiver", Scale: 5,
	})
	if in.Cause != anomaly.Incast || in.Location != at(2, 1) || len(in.Culprits) != 4 || in.Text != "at the receiver" {
		t.Errorf("%v at %v by %d flows: %q; want an incast at 2:1 by 4", in.Cause, in.Location, len(in.Culprits), in.Text)
	}
	if c.AddEvidence(Evidence{
		At: 12 * ms, From: 6 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Location: at(2, 2),
		Receiver: 41, HasReceiver: true, AtReceiver: true, Culprits: []model.FlowKey{flow(5)},
	}) == in {
		t.Error("an incast of another receiver joins the first")
	}
}

// TestIncastBesideAWrongRoute: PFC spreads from the receiver's port, and from another queue
// that flows to another host congest, which a wrong route makes. Those flows are no culprits of
// the incast, and the route is a fault of its own, whichever of the queues harms more flows.
func TestIncastBesideAWrongRoute(t *testing.T) {
	for _, scale := range []uint64{4, 9} {
		testIncastBesideAWrongRoute(t, scale)
	}
}

func testIncastBesideAWrongRoute(t *testing.T, scale uint64) {
	c := newCorrelator(t)
	misrouted := model.FlowKey{Src: model.Addr4(4), Dst: model.Addr4(77), Proto: model.UDP}
	in := c.AddEvidence(Evidence{
		At: 10 * ms, From: 5 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Location: at(3, 1),
		Extent: []model.NodeID{3, 20}, Receiver: 40, HasReceiver: true, AtReceiver: true,
		Culprits: []model.FlowKey{flow(1), flow(2)}, Text: "two senders to one host", Scale: 5,
	})
	if c.AddEvidence(Evidence{
		At: 20 * ms, From: 8 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Location: at(20, 1),
		Extent: []model.NodeID{20, 21}, Culprits: []model.FlowKey{misrouted, flow(1)}, Scale: scale,
	}) != in {
		t.Fatal("PFC that the incast spreads is an incident of its own")
	}
	if in.Location != at(3, 1) || !in.AtReceiver || in.Text != "two senders to one host" {
		t.Errorf("the incast is at %v: %q; want it at its receiver", in.Location, in.Text)
	}
	if !slices.Equal(in.Culprits, []model.FlowKey{flow(1), flow(2)}) {
		t.Errorf("culprits %v; want those of the receiver alone", in.Culprits)
	}
	route := c.AddEvidence(Evidence{
		At: 25 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.WrongRoute, Confirmed: true,
		Location: at(21, 1), Extent: []model.NodeID{21}, Flows: []model.FlowKey{misrouted},
	})
	if route == in || in.MergedInto != 0 || in.Cause != anomaly.Incast {
		t.Errorf("the incast is %v of %d; want an incident beside the wrong route", in.Cause, in.MergedInto)
	}
}

// TestTextIsTheWorstSoFar, and lost packets are the sum.
func TestTextIsTheWorstSoFar(t *testing.T) {
	c := newCorrelator(t)
	var in *Incident
	for i, lost := range []uint64{36, 515, 4} {
		in = c.AddEvidence(Evidence{
			At: model.Time(i) * 10 * ms, From: model.Time(i) * 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true,
			Location: at(6, 3), Text: []string{"36", "515", "4"}[i], Scale: lost, LostPackets: lost, SentPackets: 1000,
		})
	}
	if in.Text != "515" || in.LostPackets != 555 || in.SentPackets != 3000 {
		t.Errorf("%q, %d of %d packets lost; want 515, 555 of 3000", in.Text, in.LostPackets, in.SentPackets)
	}
}

// TestLoopLeadsToNoBlackholeOfOthers: a switch of a loop drops all packets to a host. That
// the loop does only to its own destinations.
func TestLoopLeadsToNoBlackholeOfOthers(t *testing.T) {
	to := func(host byte) model.FlowKey {
		return model.NewFlowKey(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 9}), 1),
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, host}), 4791), model.UDP)
	}
	for name, tc := range map[string]struct {
		dropped model.FlowKey
		want    int
	}{"its destination": {to(3), 1}, "another": {to(2), 2}} {
		c := newCorrelator(t)
		c.AddEvidence(Evidence{
			At: 30 * ms, From: 20 * ms, Source: anomaly.Flowsets, Cause: anomaly.Blackhole, Confirmed: true, Location: at(1, 0),
			Flows: []model.FlowKey{tc.dropped},
		})
		c.AddEvidence(Evidence{
			At: 40 * ms, From: 25 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loop, Confirmed: true, Location: at(1, 0),
			Extent: []model.NodeID{1, 2}, Flows: []model.FlowKey{to(3)},
		})
		if n := len(c.OpenIncidents()); n != tc.want {
			t.Errorf("packets to %s: %d incidents, want %d", name, n, tc.want)
		}
	}
}

// TestLateAccountProlongsNothing: what a flow lost is known for certain when it ends, perhaps
// long after the incident was closed. The incident gets the packets, and stays as long as it was.
func TestLateAccountProlongsNothing(t *testing.T) {
	c := newCorrelator(t)
	loss := Evidence{
		At: 30 * ms, From: 10 * ms, Until: 20 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true, Location: at(1, 3),
		Flows: []model.FlowKey{flow(1)}, LostPackets: 5, SentPackets: 100,
	}
	in := c.AddEvidence(loss)
	c.CloseQuiet(model.Time(time.Second))
	c.TakeChanged()
	loss.At, loss.Until = 1200*ms, 40*ms
	if late := c.AddEvidence(loss); late != in || len(c.TakeChanged()) != 1 {
		t.Fatalf("a late account belongs to incident %d; want %d, changed", late.ID, in.ID)
	}
	if in.Last != 40*ms || in.LostPackets != 10 {
		t.Errorf("until %v, %d packets lost; want 40ms and 10", in.Last, in.LostPackets)
	}
}

// TestLateLossesContinue: few losses of many packets take a second to show. Had they been known
// when they happened, they would have been of the incident that was open then, which is closed
// now. What began after its quiet period, or elsewhere, is another fault.
func TestLateLossesContinue(t *testing.T) {
	for name, tc := range map[string]struct {
		from model.Time
		at   model.Port
		same bool
	}{
		"before its end":         {20 * ms, at(1, 3), true},
		"in its quiet period":    {100 * ms, at(1, 3), true},
		"after its quiet period": {300 * ms, at(1, 3), false},
		"elsewhere":              {100 * ms, at(7, 3), false},
	} {
		c := newCorrelator(t)
		loss := Evidence{
			At: 30 * ms, From: 10 * ms, Until: 20 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true, Location: at(1, 3),
			Flows: []model.FlowKey{flow(1)}, LostPackets: 5, SentPackets: 100,
		}
		in := c.AddEvidence(loss)
		c.CloseQuiet(model.Time(time.Second))
		loss.From, loss.Location, loss.At, loss.Until = tc.from, tc.at, 1200*ms, tc.from.Add(10*time.Millisecond)
		if tc.at != in.Location {
			loss.Flows = []model.FlowKey{flow(2)}
		}
		if late := c.AddEvidence(loss); (late == in) != tc.same {
			t.Errorf("losses %s are of incident %d; want those of the closed one: %v", name, late.ID, tc.same)
		} else if tc.same && (!in.Closed || in.Last != max(30*ms, loss.Until)) {
			t.Errorf("losses %s: closed %v, until %v; want closed, until %v", name, in.Closed, in.Last, max(30*ms, loss.Until))
		}
	}
}

// TestLossOnAnotherLink: a black hole drops what reaches its switch, and a loop's packets fill
// the buffers of its nodes. A link elsewhere that loses packets is a fault of its own, even
// if they have the same destination.
func TestLossOnAnotherLink(t *testing.T) {
	for name, tc := range map[string]struct {
		cause   anomaly.Cause
		at      model.Port
		nextHop model.NodeID
		part    bool
	}{
		"of a black hole":              {anomaly.Blackhole, at(1, 3), 5, true},
		"before a black hole":          {anomaly.Blackhole, at(7, 1), 1, true},
		"to a black hole's next hop":   {anomaly.Blackhole, at(7, 1), 5, false},
		"of a loop":                    {anomaly.Loop, at(5, 1), 9, true},
		"before a loop":                {anomaly.Loop, at(7, 1), 1, true},
		"apart from a loop":            {anomaly.Loop, at(7, 1), 8, false},
		"apart from a black hole's":    {anomaly.Blackhole, at(7, 1), 8, false},
		"at the next hop of the other": {anomaly.Blackhole, at(5, 1), 8, true},
	} {
		t.Run(name, func(t *testing.T) {
			fault := Evidence{
				At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: tc.cause, Confirmed: true, Location: at(1, 0),
				NextHop: 5, HasNextHop: true, Flows: []model.FlowKey{flow(1)},
			}
			loss := Evidence{
				At: 30 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true, Location: tc.at,
				NextHop: tc.nextHop, HasNextHop: true, Flows: []model.FlowKey{flow(1)},
			}
			for _, order := range [][]Evidence{{fault, loss}, {loss, fault}} {
				c := newCorrelator(t)
				for _, e := range order {
					c.AddEvidence(e)
				}
				if n := len(c.OpenIncidents()); (n == 1) != tc.part {
					t.Errorf("%v first: %d incidents; want part of it: %v", order[0].Cause, n, tc.part)
				}
			}
		})
	}
}

// TestLossesOfADeadlock: a watchdog discards what queues of the cycle hold. Packets that
// another link loses meanwhile are another fault.
func TestLossesOfADeadlock(t *testing.T) {
	c := newCorrelator(t)
	deadlock := c.AddEvidence(Evidence{
		At: 20 * ms, From: 10 * ms, Source: anomaly.Epochs, Cause: anomaly.Deadlock, Confirmed: true, Location: at(5, 1),
		Extent: []model.NodeID{5, 6, 7}, DeadlockCycle: []model.Port{at(5, 1), at(6, 2)}, Flows: []model.FlowKey{flow(1)},
	})
	loss := Evidence{At: 33 * ms, From: 20 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true, Flows: []model.FlowKey{flow(1)}}
	for _, test := range []struct {
		at   model.Port
		part bool
	}{{at(6, 2), true}, {at(6, 1), false}} {
		loss.Location = test.at
		if got := c.AddEvidence(loss); (got == deadlock) != test.part {
			t.Errorf("a loss after %v belongs to %v; want part of the deadlock: %v", test.at, got.Cause, test.part)
		}
	}
}

// TestDoubtLowersConfidence: what rests on a source that is wrong is less certain, as far as no
// other source shows it.
func TestDoubtLowersConfidence(t *testing.T) {
	c := newCorrelator(t)
	e := Evidence{At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true, Location: at(4, 2), Flows: []model.FlowKey{flow(1)}}
	in := c.AddEvidence(e)
	c.Doubt(in, anomaly.Counters, "it has no part in this")
	if got := in.Confidence(); got != 0.9 {
		t.Errorf("confidence %v with one source, want 0.9", got)
	}
	c.TakeChanged()
	c.Doubt(in, anomaly.Flowsets, "the flowset counts too few")
	if got := in.Confidence(); got != 0.25 || len(c.TakeChanged()) != 1 {
		t.Errorf("confidence %v with a source that is doubted, want 0.25, and a change", got)
	}
	e.Source = anomaly.Probes
	c.AddEvidence(e)
	if got, want := in.Confidence(), 1-0.2*0.75/2; got != want {
		t.Errorf("confidence %v with one that is doubted and one that is not, want %v", got, want)
	}
	if in.Doubts[anomaly.Flowsets] != "the flowset counts too few" || in.Doubts[anomaly.Counters] != "" {
		t.Errorf("doubts %q, want one of flowsets", in.Doubts)
	}
}

// TestSmallIncastBesideAnotherFault: three senders to one host congest a queue on their paths
// for a moment. A fault elsewhere did not make them meet, though later evidence is near both.
func TestSmallIncastBesideAnotherFault(t *testing.T) {
	elsewhere := model.FlowKey{Src: model.Addr4(4), Dst: model.Addr4(77), Proto: model.UDP}
	for name, fault := range map[string]Evidence{
		"storm": {Source: anomaly.Epochs, Cause: anomaly.Storm, Location: at(14, 0), Extent: []model.NodeID{23, 14}},
		"loop":  {Source: anomaly.Flowsets, Cause: anomaly.Loop, Location: at(28, 0), Extent: []model.NodeID{28, 33}, Flows: []model.FlowKey{elsewhere}},
	} {
		for _, senders := range []int{2, 3} {
			c := newCorrelator(t)
			small := Evidence{
				At: 30 * ms, From: 20 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Minor: true, Location: at(25, 1), NextHop: 16, HasNextHop: true,
				Extent: []model.NodeID{25, 16, 28}, Receiver: 40, HasReceiver: true,
			}
			for i := range senders {
				small.Culprits = append(small.Culprits, flow(i))
			}
			small.Flows = small.Culprits
			incast := c.AddEvidence(small)
			fault.At, fault.From, fault.Confirmed = 40*ms, 30*ms, true
			root := c.AddEvidence(fault)
			both := Evidence{
				At: 60 * ms, From: 45 * ms, Source: anomaly.Epochs, Cause: anomaly.Contention, Confirmed: true, Location: at(16, 3),
				Extent: []model.NodeID{16, 23, 33}, Flows: []model.FlowKey{flow(0), elsewhere},
			}
			c.AddEvidence(both)
			if apart := incast != root && incast.MergedInto == 0; apart != (senders == 3) {
				t.Errorf("%s, %d senders: the incast is part of %d; want it apart: %v", name, senders, incast.MergedInto, senders == 3)
			}
		}
	}
}

// TestSuspicionBindsNoFault: a black hole that one slot suggested supported a wrong route near
// it. When it is confirmed, it is a fault of its own: no route elsewhere makes a switch drop
// all packets.
func TestSuspicionBindsNoFault(t *testing.T) {
	c := newCorrelator(t)
	dropped := model.FlowKey{Src: model.Addr4(4), Dst: model.Addr4(77), Proto: model.UDP}
	route := c.AddEvidence(Evidence{
		At: 80 * ms, From: 60 * ms, Source: anomaly.Flowsets, Cause: anomaly.WrongRoute, Confirmed: true, Location: at(26, 1),
		Extent: []model.NodeID{26}, Flows: []model.FlowKey{flow(1)},
	})
	c.AddSupporting(Evidence{
		At: 85 * ms, From: 60 * ms, Source: anomaly.Counters, Cause: anomaly.Stall, Confirmed: true, Location: at(30, 2), NextHop: 26, HasNextHop: true,
	})
	hole := Evidence{At: 89 * ms, From: 70 * ms, Source: anomaly.Flowsets, Cause: anomaly.Blackhole, Location: at(30, 0), Flows: []model.FlowKey{dropped}}
	if c.AddSupporting(hole) != route {
		t.Fatal("the suspicion supports nothing: the test shows nothing")
	}
	hole.At, hole.From, hole.Confirmed = 99*ms, 80*ms, true
	if in := c.AddEvidence(hole); in == route || in.Cause != anomaly.Blackhole {
		t.Errorf("the black hole is %v; want an incident of its own", in.Cause)
	}
}
