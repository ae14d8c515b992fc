package incident

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

func TestHeadline(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	port := func(ref string) model.Port {
		p, err := f.FindPort(ref)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	host := func(n int) model.Addr { return f.Node(f.Hosts()[n]).IPv4 }
	flows := func(to int, from ...int) (list []model.FlowKey) {
		for _, n := range from {
			list = append(list, model.FlowKey{Src: host(n), Dst: host(to), Proto: model.UDP})
		}
		return list
	}
	for want, in := range map[string]Incident{
		"Incast: 3 hosts → h4 congest tor2 Ethernet0 for 12 ms; PFC spread to 1 port; 2 flows of job training affected.": {
			Cause: anomaly.Incast, Location: port("tor2>h4"), Begin: 1, Last: 1 + model.Time(12*time.Millisecond),
			Culprits: flows(4, 1, 8, 9), Flows: flows(5, 1, 2),
			Timeline: []Evidence{{Cause: anomaly.Incast, Path: []model.Port{port("leaf3>tor2"), port("tor2>h4")}}},
		},
		"Flow contention: h1 → h4 congests tor2 Ethernet0.": {
			Cause: anomaly.Contention, Location: port("tor2>h4"), Culprits: flows(4, 1),
		},
		"Incast: 2 hosts → h4 (tor2 Ethernet0) congest leaf3 Ethernet0.": {
			Cause: anomaly.Incast, Location: port("leaf3>tor2"), Culprits: flows(4, 8, 9), Receiver: f.Hosts()[4], HasReceiver: true,
		},
		"Silent packet loss: packets are lost at leaf1 without a drop counter; 515 of 10529 packets lost.": {
			Cause: anomaly.Loss, Location: model.Port{Node: port("leaf1:1").Node}, LostPackets: 515, SentPackets: 10529,
		},
		"PFC storm: h15 pauses its switch port without end; 64+ flows affected.": {
			Cause: anomaly.Storm, Location: model.Port{Node: f.Hosts()[15]}, Flows: make([]model.FlowKey, MaxFlows),
		},
		"Black hole: leaf1 drops all packets of certain flows.": {
			Cause: anomaly.Blackhole, Location: model.Port{Node: port("leaf1:1").Node},
		},
	} {
		var jobs []string
		if in.Cause == anomaly.Incast {
			jobs = []string{"training"}
		}
		if got := in.Headline(f, jobs); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
