package sim

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// TestResetEndsADeadlock closes a cycle of four queues, repairs the routes,
// which resumes no queue, and resets one switch, which does: the queue after it
// takes the short path.
func TestResetEndsADeadlock(t *testing.T) {
	f, err := topo.Ring(4, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Buffer, cfg.RTO = model.MB, time.Millisecond
	n := network(t, f, nil, cfg)
	hosts, sw := f.Hosts(), f.Switches()
	var wrong Reroute
	var flows []traffic.Flow
	for i := range sw {
		for j := range hosts {
			if i != j {
				wrong.Entries = append(wrong.Entries, Entry{Switch: sw[i], To: netip.PrefixFrom(f.Node(hosts[j]).IPv4.Netip(), 32), Via: []model.NodeID{sw[(i+3)%4]}})
			}
		}
		flows = append(flows, traffic.Flow{Src: hosts[i], Dst: hosts[(i+1)%4], Bytes: 10 * model.MB, Priority: 3, NoCC: true})
	}
	for _, in := range []Injection{
		{For: 2 * time.Millisecond, Fault: wrong},
		{At: model.Time(8 * time.Millisecond), Fault: QueueReset{Switch: sw[0]}},
	} {
		if err := n.Inject(in); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	n.Run(engine.Of(3 * time.Millisecond))
	before := n.Counts.Delivered
	n.Run(engine.Of(8*time.Millisecond) - 1)
	if n.Counts.Delivered > before+100 || n.Finished != 0 {
		t.Fatalf("%d packets delivered in 5 ms; want a deadlock that persists after its routes are repaired", n.Counts.Delivered-before)
	}
	n.Run(engine.Of(100 * time.Millisecond))
	if n.Finished != 4 || n.Counts.Drops[DropReset] == 0 {
		t.Errorf("%d flows finished, %d packets lost to the reset; want all 4, and some", n.Finished, n.Counts.Drops[DropReset])
	}
}
