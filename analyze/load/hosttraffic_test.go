package load

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// TestHostThatCountsAddsNothing: a host that exports flowsets is the last of a path, after
// the port that leads to it. What that port carried is what its switch counted, of the
// first flow of a path and of all others.
func TestHostThatCountsAddsNothing(t *testing.T) {
	f, routes := fabric(t)
	hosts := f.Hosts()
	port := f.Port(model.Port{Node: hosts[0], Port: 1}).Peer
	n := 5
	var atSwitch, atHost []flows.Record
	for i := range n {
		k := key(f, 1, 0, i)
		atSwitch = append(atSwitch, flows.Record{Key: k, Out: port.Port, Packets: 10, Bytes: 1000, Grade: flows.Exact})
		atHost = append(atHost, flows.Record{Key: k, Packets: 7, Bytes: 700, Grade: flows.Exact})
	}
	m := paths.NewMap(0, slot)
	m.AddFlowset(&flows.Decoded{Switch: port.Node, Length: slot, Records: atSwitch})
	m.AddFlowset(&flows.Decoded{Switch: hosts[0], Length: slot, Records: atHost})
	ports := paths.NewPorts(f)
	m.OrderPaths(ports, routes)
	for i := range n {
		if _, ok := m.PathNumber(i); !ok {
			t.Fatalf("flow %d has no number of its path; the test needs one", i)
		}
	}
	var traffic HostTraffic
	traffic.Count(ports, m)
	number, ok := ports.Number(port.Node, port.Port)
	if got, want := traffic.bytes[number], uint64(1000*n); !ok || got != want {
		t.Errorf("%s carried %d bytes to the host; want %d, as its switch counted", f.Node(port.Node).Name, got, want)
	}
	if len(traffic.ports) != 1 {
		t.Errorf("%d ports carried something to hosts; want 1", len(traffic.ports))
	}
}

// TestPathToNoHost: flows that end at a port to a switch are no host's traffic, whatever
// number their path has.
func TestPathToNoHost(t *testing.T) {
	f, routes := fabric(t)
	tor := f.Port(model.Port{Node: f.Hosts()[0], Port: 1}).Peer.Node
	var up model.PortID
	for _, p := range f.Node(tor).Ports {
		if f.Node(p.Peer.Node).Role > topo.Mux {
			up = p.ID
		}
	}
	m := one(0, tor, flows.Record{Key: key(f, 0, 100, 1), Out: up, Packets: 1, Bytes: 100, Grade: flows.Exact},
		flows.Record{Key: key(f, 0, 100, 2), Out: up, Packets: 1, Bytes: 100, Grade: flows.Exact})
	ports := paths.NewPorts(f)
	m.OrderPaths(ports, routes)
	var traffic HostTraffic
	if traffic.Count(ports, m); len(traffic.ports) != 0 {
		t.Errorf("%d ports carried something to hosts; want none", len(traffic.ports))
	}
}
