package sim

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/sim/traffic"
)

// TestOutside runs flows to and from addresses that only the world has.
func TestOutside(t *testing.T) {
	n := yard(t, nil)
	world := n.named(t, "world")
	n.add(t,
		traffic.Flow{Src: 1, To: outside4, Bytes: 50_000, Priority: 3, Start: 1000},
		traffic.Flow{Src: 2, To: outside6, Bytes: 50_000, Transport: traffic.TCP, Start: 1000},
		traffic.Flow{Src: world, From: outside4, Dst: 4, Bytes: 50_000, Priority: 3, Start: 1000},
		traffic.Flow{Src: world, From: outside6, Dst: 5, Bytes: 50_000, Transport: traffic.TCP, Start: 1000},
		traffic.Flow{Src: world, From: outside4, To: vip4, Bytes: 50_000, Transport: traffic.TCP, Start: 1000})
	border := n.Switch(n.named(t, "border"))
	before := border.ports[2].TxPkts
	n.run(50 * time.Millisecond)
	for _, r := range n.Records() {
		if !r.Finished || r.Retransmitted != 0 {
			t.Errorf("flow %d (%v) finished %v, %d bytes again; want true and none", r.ID, r.Key, r.Finished, r.Retransmitted)
		}
	}
	if r := n.Records(); len(r) != 5 || n.flows[0].dst.ID != world || n.flows[0].key.Dst != outside4 || n.flows[2].key.Src != outside4 || !n.flows[3].key.V6 {
		t.Errorf("records %+v; want five flows with outside addresses", r)
	}
	if border.ports[2].TxPkts == before {
		t.Error("nothing left by the border")
	}
	if r := n.flows[0].record(); r.Ideal == 0 {
		t.Error("the flow to the outside has no ideal time")
	}
	n.clean(t)
}

func TestFlowErrors(t *testing.T) {
	n := yard(t, nil)
	for name, f := range map[string]traffic.Flow{
		"no service":         {Src: 1, To: addr("192.0.2.99")},
		"a switch":           {Src: 1, To: n.fabric.Node(n.named(t, "tor0")).IPv4},
		"not of the source":  {Src: 1, Dst: 2, From: vm4},
		"from a virtual one": {Src: n.named(t, "mux0"), Dst: 2, From: vip4},
		"mixed families":     {Src: 8, From: outside4, To: outside6},
		"from itself":        {Src: 8, From: outside4, To: outside4},
		"no host":            {Src: 1, Dst: 999},
		"no source":          {Src: 999, To: vip4},
	} {
		f.Bytes = 1
		if err := n.AddFlows([]traffic.Flow{f}); err == nil {
			t.Errorf("%s: AddFlows(%+v) = nil; want an error", name, f)
		}
	}
}
