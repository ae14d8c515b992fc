package simhost

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/poll"
)

// TestDrainDeliversPendingReadouts ends a run long before switch CPUs
// have read what a poll asked for.
func TestDrainDeliversPendingReadouts(t *testing.T) {
	n := fatTree(t, sim.DefaultConfig())
	hosts := n.Fabric().Hosts()
	add(t, n, traffic.Flow{Src: hosts[0], Dst: hosts[15], Bytes: 100_000, Priority: 3})
	var at []model.Time
	m, err := NewManagement(n, DefaultManagementConfig(), func(now model.Time, _ model.NodeID, _ []byte) { at = append(at, now) })
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Carrier = m
	var all []*Switch
	for _, id := range n.Fabric().Switches() {
		p, err := epoch.New(epoch.DefaultConfig(), Describe(n, id, 0))
		if err != nil {
			t.Fatal(err)
		}
		s, err := Attach(n, id, inswitch.NewPipeline(p), cfg)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	n.At(engine.Of(20*time.Microsecond), func() {
		key, _ := n.FlowKey(0)
		SendPoll(n.Host(hosts[0]), &poll.Poll{Layout: poll.Weft, Flag: poll.Victim, HopLimit: 8, Event: poll.Event{Number: 1}, Flow: key})
	})
	n.Run(1 * ms)
	if len(at) != 0 {
		t.Fatalf("%d datagrams within a millisecond; want none before 80 ms", len(at))
	}
	m.Drain(all)
	if len(at) < 5 || at[0] < model.Time(80*time.Millisecond) || !slices.IsSorted(at) || n.Now() != 1*ms {
		t.Errorf("datagrams at %v, run at %v; want those of five switches after 80 ms, in order, and the run where it was", at, n.Now())
	}
	for _, s := range all {
		if st := s.Stats(); st.InFlight != 0 || st.Pending != 0 {
			t.Errorf("%d reports in flight, %d pending; want all delivered", st.InFlight, st.Pending)
		}
	}
}
