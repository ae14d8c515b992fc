package diagnose

import (
	"encoding/json"
	"testing"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// TestJSONIsStable holds the JSON names that clients read.
func TestJSONIsStable(t *testing.T) {
	f, err := topo.Ring(3, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	hosts, sw := f.Hosts(), f.Switches()
	flow := func(a, b int) model.FlowKey {
		return model.FlowKey{Src: f.Node(hosts[a]).IPv4, Dst: f.Node(hosts[b]).IPv4, Proto: model.UDP}
	}
	v := Verdict{
		Anomaly: anomaly.DeadlockOutOfLoop, Cause: anomaly.HostInjection, Detail: anomaly.NICStorm, Victim: flow(0,
			1), Initial: model.Port{Node: sw[0], Port: 1},
		Culprits: []Culprit{{flow(1, 2), 0.5}}, Path: []model.Port{{Node: sw[1], Port: 2}},
		Fault: &RoutingFault{sw[0], hosts[2], sw[1]}, Share: 0.5, Confidence: 0.75, Switches: 3, Telemetry: 1000, Remedy: "check",
	}
	b, err := json.Marshal(v.View(f))
	if err != nil {
		t.Fatal(err)
	}
	name := func(id model.NodeID) string { return f.Node(id).Name }
	h0, h1, h2, s0, s1 := name(hosts[0]), name(hosts[1]), name(hosts[2]), name(sw[0]), name(sw[1])
	want := `{"anomaly":"deadlock-out-of-loop","root_cause":"host-pfc-injection","cause_detail":"nic-storm",` +
		`"initial_port":{"node":"` + s0 + `","port":1,"interface":"` + f.Port(v.Initial).Name + `","peer":"` + name(f.Port(v.Initial).Peer.Node) + `"},` +
		`"culprits":[{"src":"` + h1 + `","dst":"` + h2 + `","weight":0.5}],"spreaders":[],` +
		`"pfc_path":[{"node":"` + s1 + `","port":2,"interface":"` + f.Port(v.Path[0]).Name + `","peer":"` + name(f.Port(v.Path[0]).Peer.Node) + `"}],"deadlock_cycle":[],"persistent":false,` +
		`"routing_fault":{"node":"` + s0 + `","dst":"` + h2 + `","next_hop":"` + s1 + `"},` +
		`"victim":{"src":"` + h0 + `","dst":"` + h1 + `"},"victims":[],` +
		`"account":"","share":0.5,"confidence":0.75,"evidence":[],"switches_polled":3,"telemetry_bytes":1000,"remedy":"check"}`
	if string(b) != want {
		t.Errorf("JSON is\n%s\nwant\n%s", b, want)
	}
	var back VerdictView
	if err := json.Unmarshal(b, &back); err != nil || back.Anomaly != anomaly.DeadlockOutOfLoop ||
		back.Detail != anomaly.NICStorm || back.Cause != anomaly.HostInjection {
		t.Errorf("read back %+v, %v", back, err)
	}
}
