package simhost

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/poll"
)

// TestPollFindsIncastThatCausesAPause makes eight hosts send to one, until PFC
// pauses a flow that goes elsewhere. Its host requests a diagnosis, and the answers lead
// from the flow's paused port to the port of the incast.
func TestPollFindsIncastThatCausesAPause(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Congestion = nil
	cfg.Buffer = 2 * model.MB
	n := fatTree(t, cfg)
	fab := n.Fabric()
	hosts := fab.Hosts()
	var flows []traffic.Flow
	for i := range 8 { // from the other pods into h0
		flows = append(flows, traffic.Flow{Src: hosts[8+i], Dst: hosts[0], Bytes: 2_000_000, Priority: 3, Start: model.Time(20 * time.Microsecond)})
	}
	// Victims: to h1, on the same ToR, from the same hosts.
	for i := range 8 {
		flows = append(flows, traffic.Flow{Src: hosts[8+i], Dst: hosts[1], Bytes: 200_000, Priority: 3, Start: model.Time(100 * time.Microsecond), Rate: 5 * model.Gbps})
	}
	add(t, n, flows...)
	collector, err := provenance.NewCollector(provenance.DefaultConfig(64))
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewManagement(n, DefaultManagementConfig(), func(now model.Time, _ model.NodeID, datagram []byte) {
		var r dta.Reader
		var rep dta.Report
		for _ = r.Reset(datagram); r.Next(&rep); {
			if _, err := collector.AddChunk(now, rep.Data); err != nil {
				t.Errorf("report: %v", err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	host := DefaultConfig()
	host.Carrier = m
	prog := epoch.DefaultConfig()
	prog.EpochLength, prog.ReadoutTime = 200*time.Microsecond, 100*time.Microsecond
	for _, id := range fab.Switches() {
		p, err := epoch.New(prog, Describe(n, id, 0))
		if err != nil {
			t.Fatal(err)
		}
		attach(t, n, id, host, p)
	}
	var configs []agent.Config
	for _, id := range hosts {
		configs = append(configs, agent.DefaultConfig(id))
	}
	requests := map[poll.Event]model.FlowKey{}
	agents, err := NewAgents(n, 20*time.Microsecond, configs, func(_ model.Time, tr agent.DiagnosisRequest) {
		requests[tr.Poll.Event] = tr.Poll.Flow
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Run(3 * ms)
	if agents.Stats().Polls == 0 {
		t.Fatal("no diagnosis request; want some")
	}
	toH0 := model.Port{Node: fab.Port(model.Port{Node: hosts[0], Port: 1}).Peer.Node}
	toH0.Port = fab.Node(toH0.Node).PortsTo(hosts[0])[0]
	victims, found := 0, 0
	for ev, key := range requests {
		if dst, _ := fab.ByAddr(key.Dst); dst != hosts[1] {
			continue
		}
		victims++
		e := collector.Evidence(ev)
		g := provenance.Build(e, key, fab)
		if reaches(g, key, provenance.Queue{Port: toH0, Priority: 3}) {
			found++
		}
		for _, node := range g.Nodes {
			if fab.Node(node.Node).Role < topo.ToR {
				t.Errorf("node %v of the graph is no switch's", node.Queue)
			}
		}
	}
	if victims == 0 || found == 0 {
		t.Errorf("%d requests for victims, %d of them lead to the incast's port; want some", victims, found)
	}
}

// reaches reports whether a flow waited, by ports that paused it and those they
// waited for, for a queue.
func reaches(g *provenance.Graph, key model.FlowKey, q provenance.Queue) bool {
	seen := make([]bool, len(g.Nodes))
	var walk func(n int) bool
	walk = func(n int) bool {
		if g.Nodes[n].Queue == q {
			return true
		}
		if seen[n] {
			return false
		}
		seen[n] = true
		for _, e := range provenance.EdgesFrom(g.PortPort, n) {
			if walk(e.To) {
				return true
			}
		}
		return false
	}
	f := g.Flow(key)
	if f < 0 {
		return false
	}
	for _, e := range provenance.EdgesFrom(g.FlowPort, f) {
		if walk(e.To) {
			return true
		}
	}
	return false
}
