package sim

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// TestForgettingChangesNothing runs the same flows, added in parts, with and
// without ForgetFinished: the packets are the same, the list of flows is not.
func TestForgettingChangesNothing(t *testing.T) {
	const step = 100 * time.Microsecond
	play := func(forget bool) *Network {
		n := fatTree(t, 4, DefaultConfig())
		hosts := n.Fabric().Hosts()
		for round := range 40 {
			var list []traffic.Flow
			for i := range hosts {
				list = append(list, traffic.Flow{
					Src: hosts[i], Dst: hosts[(i+round%7+1)%len(hosts)], Bytes: model.Bytes(2000 + 500*round),
					Start: n.Now().Model(), Priority: 3, Transport: traffic.Transport(round % 2),
				})
			}
			list[3].After = []int{0, 1}
			if err := n.AddFlows(list); err != nil {
				t.Fatal(err)
			}
			n.Run(n.Now() + engine.Of(step))
			if forget {
				n.ForgetFinished(n.Now() - engine.Of(step))
			}
		}
		n.Run(n.Now() + engine.Of(100*time.Millisecond))
		return n
	}
	with, without := play(true), play(false)
	if with.Counts != without.Counts || with.Finished != without.Finished {
		t.Errorf("with Forget %+v, %d finished; without %+v, %d", with.Counts, with.Finished, without.Counts, without.Finished)
	}
	if with.Finished != 40*16 {
		t.Errorf("%d flows finished, want all 640", with.Finished)
	}
	if len(with.flows) > 200 || len(without.flows) != 640 {
		t.Errorf("%d flow ids with ForgetFinished, %d without; want far fewer, and 640", len(with.flows), len(without.flows))
	}
}

// TestPacketsOfForgottenFlowsAreDropped delivers to a host what was in flight.
func TestPacketsOfForgottenFlowsAreDropped(t *testing.T) {
	n := fatTree(t, 4, DefaultConfig())
	hosts := n.Fabric().Hosts()
	one := []traffic.Flow{{Src: hosts[0], Dst: hosts[9], Bytes: 100, Priority: 3}}
	if err := n.AddFlows(one); err != nil {
		t.Fatal(err)
	}
	late := n.flows[0].makePacket()
	n.Run(engine.Of(time.Millisecond))
	n.flows[0].finish()
	n.ForgetFinished(engine.Forever)
	n.Host(hosts[9]).deliver(n.Host(hosts[9]).ports[0], late)
	n.settle()
	if n.Counts.Drops[DropHost] != 1 {
		t.Errorf("drops %v, want the packet without a flow", n.Counts.Drops)
	}
	if err := n.AddFlows(one); err != nil {
		t.Fatal(err)
	}
	if len(n.flows) != 1 || n.flows[0] == nil {
		t.Errorf("%d flow ids, want the old one used again", len(n.flows))
	}
}
