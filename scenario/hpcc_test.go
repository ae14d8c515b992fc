package scenario

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/hpcc"
	"github.com/weft-telemetry/weft/sim/engine"
)

// zeroWall is a wall clock that is not read.
var zeroWall time.Time

// TestHPCCRunsAreTheSetups: skipping the idle time before the first flow
// changes nothing: flows, times and counts are those of the unmodified set-up.
func TestHPCCRunsAreTheSetups(t *testing.T) {
	for _, name := range []string{"star", "ring", "diamond"} {
		c, err := hpcc.Read("hpcc/testdata/" + name + "/config.txt")
		if err != nil {
			t.Fatal(err)
		}
		setup, err := hpcc.Build(c, hpcc.Options{Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		s := FromHPCC(c, setup)
		if s.Base < model.Time(1900*time.Millisecond) {
			t.Errorf("%s: base %v; want about 2 s", name, s.Base)
		}
		s.StopWhenFinished = false
		s.Agents, s.Telemetry = nil, nil // their polls are packets, too
		r := runScenario(t, s)
		n, err := setup.Network()
		if err != nil {
			t.Fatal(err)
		}
		n.Run(engine.Time(setup.Stop) * engine.Nanosecond)
		type flow struct {
			Key           model.FlowKey
			Start, Finish model.Time
			Finished      bool
		}
		var want, got []flow
		for _, rec := range n.Records() {
			want = append(want, flow{rec.Key, rec.Start.Model(), rec.Finish.Model(), rec.Finished})
		}
		for _, f := range r.Run.Flows {
			got = append(got, flow{f.Key, f.Start, f.Finish, f.Finished})
		}
		if x := cmp.Diff(want, got); x != "" {
			t.Errorf("%s: flows (-set-up +scenario):\n%s", name, x)
		}
		if r.Run.PacketHops != uint64(n.Counts.Hops) || r.Run.End != setup.Stop {
			t.Errorf("%s: %d packet-hops to %v; want %d to %v", name, r.Run.PacketHops, r.Run.End, n.Counts.Hops, setup.Stop)
		}
		if name == "ring" && (r.Verdict != UnexpectedFault || len(r.Deadlocks) != 1 || r.Deadlocks[0].Formed < s.Base) {
			t.Errorf("ring: verdict %s, deadlocks %+v; want FAULT, and one after %v", r.Verdict, r.Deadlocks, s.Base)
		}
	}
}

// A file of Hawkeye's fork brings its agents along, in the fork's units.
func TestHPCCAgents(t *testing.T) {
	for name, want := range map[string]*Agents{
		"star": nil,
		"ring": {Hosts: []model.NodeID{0, 2}, RTTFactor: 3, RTTLimit: 80 * time.Microsecond, MinRepollInterval: time.Millisecond, CheckInterval: 5 * time.Microsecond},
	} {
		c, err := hpcc.Read("hpcc/testdata/" + name + "/config.txt")
		if err != nil {
			t.Fatal(err)
		}
		setup, err := hpcc.Build(c, hpcc.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if x := cmp.Diff(want, FromHPCC(c, setup).Agents); x != "" {
			t.Errorf("%s: agents (-want +got):\n%s", name, x)
		}
	}
}
