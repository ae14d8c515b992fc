package incident

import (
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

func joiner(t rapid.TB) *Correlator {
	j, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestBlackholeIsOneIncident is three sources about one place: the cause that
// the counters suspect becomes sure, and nothing is missing in the end.
func TestBlackholeIsOneIncident(t *testing.T) {
	j := joiner(t)
	flows := []model.FlowKey{flow(1), flow(2)}
	in := j.AddEvidence(Evidence{At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Blackhole, Location: at(4, 2), Flows: flows})
	if got := in.MissingSources(); !slices.Equal(got, []anomaly.Source{anomaly.Traces, anomaly.Probes}) {
		t.Errorf("missing %v, want traces and probes", got)
	}
	j.AddEvidence(Evidence{At: 25 * ms, From: 12 * ms, Source: anomaly.Traces, Cause: anomaly.Loss, Confirmed: true, Location: at(4, 0), Flows: flows[:1]})
	j.AddEvidence(Evidence{At: 40 * ms, From: 12 * ms, Source: anomaly.Probes, Cause: anomaly.Blackhole, Confirmed: true, Location: at(4, 2), Flows: flows[:1], Text: "persistent"})
	if open := j.OpenIncidents(); len(open) != 1 {
		t.Fatalf("%d incidents, want one", len(open))
	}
	if in.Cause != anomaly.Blackhole || !in.Confirmed || in.Text != "persistent" || len(in.MissingSources()) != 0 || in.Begin != 10*ms {
		t.Errorf("incident %+v; want a sure black hole since 10 ms of which nothing is missing", in)
	}
}

// TestConsequencesJoinTheirCause lets a loop fill queues and drop packets.
func TestConsequencesJoinTheirCause(t *testing.T) {
	j := joiner(t)
	j.AddEvidence(Evidence{At: 11 * ms, From: 10 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Location: at(5, 1), Extent: []model.NodeID{5, 6}})
	j.AddEvidence(Evidence{At: 14 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true, Location: at(7, 1), Flows: []model.FlowKey{flow(3)}})
	if len(j.OpenIncidents()) != 2 {
		t.Fatalf("%d incidents, want two as long as nothing connects them", len(j.OpenIncidents()))
	}
	in := j.AddEvidence(Evidence{At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loop, Confirmed: true, Location: at(6, 2), Extent: []model.NodeID{6, 7}, Flows: []model.FlowKey{flow(3)}})
	if len(j.OpenIncidents()) != 1 || in.Cause != anomaly.Loop || in.Location != at(6, 2) {
		t.Errorf("%d incidents, the last %v at %v; want one loop at 6:2", len(j.OpenIncidents()), in.Cause, in.Location)
	}
	changed := j.TakeChanged()
	if len(changed) != 2 || changed[1].MergedInto != in.ID || !changed[1].Closed {
		t.Errorf("changed %+v; want the younger one closed as part of the older", changed)
	}
}

// TestWhatGoesOnIsNotNew: packets that leave by a wrong route are missed where
// they should have gone, before the circle that they close is known and after.
func TestWhatGoesOnIsNotNew(t *testing.T) {
	j := joiner(t)
	in := j.AddEvidence(Evidence{At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.WrongRoute, Confirmed: true, Location: at(6, 3), Flows: []model.FlowKey{flow(3)}})
	lost := Evidence{At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true, Location: at(6, 4), Flows: []model.FlowKey{flow(3)}}
	j.AddEvidence(lost)
	j.AddEvidence(Evidence{At: 25 * ms, From: 10 * ms, Source: anomaly.Epochs, Cause: anomaly.Deadlock, Confirmed: true, Location: at(6, 3), Extent: []model.NodeID{6, 7}})
	lost.At = 30 * ms
	if again := j.AddEvidence(lost); again != in || in.Cause != anomaly.Deadlock || len(j.OpenIncidents()) != 1 {
		t.Errorf("the same loss as before founds %+v; want it in the deadlock's incident", again)
	}
	lost.Location = at(6, 2)
	if j.AddEvidence(lost) == in {
		t.Error("a loss elsewhere joins the deadlock: its links do not lose packets")
	}
}

func TestUnrelatedStayApart(t *testing.T) {
	for name, pair := range map[string][2]Evidence{
		"two places": {
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
		"a storm, and a guess at a loop": {
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Storm, Confirmed: true, Location: at(1, 1)},
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Loop, Location: at(1, 1)},
		},
		"two queues": {
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Contention, Location: at(1, 1), Flows: []model.FlowKey{flow(1)}},
			{At: 10 * ms, From: 10 * ms, Cause: anomaly.Contention, Location: at(1, 2), Flows: []model.FlowKey{flow(1)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := joiner(t)
			j.AddEvidence(pair[0])
			j.AddEvidence(pair[1])
			if len(j.OpenIncidents()) != 2 {
				t.Errorf("%d incidents, want two", len(j.OpenIncidents()))
			}
		})
	}
}

// TestHashesAreOneTrouble: switches that are set up alike hash alike.
func TestHashesAreOneTrouble(t *testing.T) {
	j := joiner(t)
	j.AddEvidence(Evidence{At: 60 * ms, From: 50 * ms, Cause: anomaly.Imbalance, Confirmed: true, Location: at(1, 0), Text: "worst"})
	in := j.AddEvidence(Evidence{At: 110 * ms, From: 100 * ms, Cause: anomaly.Imbalance, Confirmed: true, Location: at(2, 0)})
	if len(j.OpenIncidents()) != 1 || !slices.Equal(in.Nodes, []model.NodeID{1, 2}) || in.Text != "worst" {
		t.Errorf("%d incidents, the last at %v: %q; want one at both switches", len(j.OpenIncidents()), in.Nodes, in.Text)
	}
}

// TestLaterTroubleTakesNothingIn is a fabric whose queues are busy all the time
// with two faults one after the other. What a queue says that all three touch is
// the newest fault's, and each keeps its cause.
func TestLaterTroubleTakesNothingIn(t *testing.T) {
	j := joiner(t)
	busy := j.AddEvidence(Evidence{At: 10 * ms, From: 5 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Minor: true, Location: at(1, 1), Extent: []model.NodeID{2, 3}})
	for now := 20 * ms; now < 300*ms; now += 20 * ms {
		j.AddEvidence(Evidence{At: now, From: now, Source: anomaly.Epochs, Cause: anomaly.Contention, Confirmed: true, Location: at(1, 1)})
	}
	storm := j.AddEvidence(Evidence{At: 110 * ms, From: 100 * ms, Source: anomaly.Epochs, Cause: anomaly.Storm, Confirmed: true, Location: at(9, 0), Extent: []model.NodeID{2}})
	loop := j.AddEvidence(Evidence{At: 220 * ms, From: 210 * ms, Source: anomaly.Flowsets, Cause: anomaly.Loop, Confirmed: true, Location: at(2, 0), Extent: []model.NodeID{2, 4}})
	if got := j.AddEvidence(Evidence{At: 230 * ms, From: 220 * ms, Source: anomaly.Flowsets, Cause: anomaly.Stall, Confirmed: true, Location: at(2, 1)}); got != loop {
		t.Errorf("packets that stand are of %v; want of the loop", got.Cause)
	}
	if got := [...]anomaly.Cause{busy.Cause, storm.Cause, loop.Cause}; got != [...]anomaly.Cause{anomaly.Incast, anomaly.Storm, anomaly.Loop} || len(j.OpenIncidents()) != 3 {
		t.Errorf("%v in %d open incidents; want incast, storm and loop in three", got, len(j.OpenIncidents()))
	}
}

// TestWhatCostsNothingIsANotice until something says that it does.
func TestWhatCostsNothingIsANotice(t *testing.T) {
	j := joiner(t)
	in := j.AddEvidence(Evidence{At: 10 * ms, From: 10 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Minor: true, Location: at(1, 1)})
	j.AddEvidence(Evidence{At: 11 * ms, From: 10 * ms, Source: anomaly.Labels, Cause: anomaly.Contention, Confirmed: true, Location: at(1, 1)})
	if in.Severity() != anomaly.Notice {
		t.Errorf("%v of an incast that cost nothing; want notice", in.Severity())
	}
	j.AddEvidence(Evidence{At: 20 * ms, From: 10 * ms, Source: anomaly.Counters, Cause: anomaly.Stall, Confirmed: true, Location: at(1, 2)})
	if in.Severity() != anomaly.Warning || in.Cause != anomaly.Incast {
		t.Errorf("%v, %v once a port stood; want a warning of an incast", in.Severity(), in.Cause)
	}
	j.AddEvidence(Evidence{At: 50 * ms, From: 40 * ms, Source: anomaly.Epochs, Cause: anomaly.Storm, Confirmed: true, Location: at(9, 0), Extent: []model.NodeID{1}})
	if in.Cause != anomaly.Storm || in.Begin != 10*ms {
		t.Errorf("%v since %v; want a storm since 10 ms, when ports began to stand", in.Cause, in.Begin)
	}
}

// TestOrdinaryLifeIsNotTheBeginning of what comes after it at the same place.
func TestOrdinaryLifeIsNotTheBeginning(t *testing.T) {
	j := joiner(t)
	j.AddEvidence(Evidence{At: 10 * ms, From: 5 * ms, Source: anomaly.Epochs, Cause: anomaly.Contention, Confirmed: true, Location: at(1, 1)})
	in := j.AddEvidence(Evidence{At: 60 * ms, From: 50 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Location: at(1, 2)})
	j.AddEvidence(Evidence{At: 70 * ms, From: 40 * ms, Source: anomaly.Flowsets, Cause: anomaly.Contention, Confirmed: true, Location: at(1, 2)})
	if in.Begin != 50*ms || len(j.OpenIncidents()) != 1 {
		t.Errorf("%d incidents, the last since %v; want one since 50 ms", len(j.OpenIncidents()), in.Begin)
	}
}

// TestNothingIsLost adds random statements: each is counted in exactly one
// incident, whatever merges, and incidents end when they are quiet.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.MaxOpen = rapid.IntRange(1, 6).Draw(t, "open")
		j, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		now, said := model.Time(0), 0
		total := map[uint64]int{}
		note := func() {
			for _, in := range j.TakeChanged() {
				n := 0
				for _, c := range in.Sources {
					n += c
				}
				if n != len(in.Timeline)+in.Omitted {
					t.Fatalf("incident %d: %d statements by source, %d shown and %d not", in.ID, n, len(in.Timeline), in.Omitted)
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
		for range rapid.IntRange(0, 200).Draw(t, "statements") {
			now += model.Time(rapid.IntRange(0, 20).Draw(t, "pause")) * ms
			j.CloseQuiet(now)
			e := Evidence{
				At: now, From: now, Confirmed: rapid.Bool().Draw(t, "sure"),
				Source: anomaly.Source(rapid.IntRange(0, int(anomaly.NumSources)-1).Draw(t, "source")),
				Cause:  anomaly.Cause(rapid.IntRange(0, int(anomaly.NumCauses)-1).Draw(t, "cause")),
				Location:  at(model.NodeID(rapid.IntRange(0, 9).Draw(t, "node")), 1),
				Flows:  []model.FlowKey{flow(rapid.IntRange(0, 9).Draw(t, "flow"))},
			}
			j.AddEvidence(e)
			said++
			if rapid.Bool().Draw(t, "look") {
				note()
			}
		}
		j.CloseQuiet(now.Add(cfg.QuietPeriod + 1))
		note()
		if len(j.OpenIncidents()) != 0 {
			t.Fatalf("%d incidents open after a long quiet", len(j.OpenIncidents()))
		}
		sum := 0
		for _, n := range total {
			sum += n
		}
		if sum != said {
			t.Fatalf("%d statements in all incidents, %d were made", sum, said)
		}
	})
}
