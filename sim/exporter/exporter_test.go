package exporter

import (
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// fabric is a fat-tree with k=4 and background load for 4 ms.
func fabric(t testing.TB) *sim.Network {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	n, err := sim.New(routes, sim.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	load := traffic.DefaultPoisson()
	load.Duration = 4 * time.Millisecond
	flows, err := traffic.Generate(1, traffic.HostsOf(f), load)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	return n
}

// recorded is what the exporters of a fabric sent.
type recorded struct {
	sum     map[model.Port]*portstat.Counters // of all readings
	peak    map[model.Port]model.Bytes        // of class 3
	samples map[model.NodeID]uint64
	drops   map[portstat.Reason]int
}

// record attaches exporters to all switches and polls them at an interval.
func record(t testing.TB, n *sim.Network, sampling uint32, interval time.Duration) (*recorded, map[model.NodeID]*Exporter) {
	t.Helper()
	r := &recorded{
		map[model.Port]*portstat.Counters{}, map[model.Port]model.Bytes{}, map[model.NodeID]uint64{}, map[portstat.Reason]int{},
	}
	all := map[model.NodeID]*Exporter{}
	for _, id := range n.Fabric().Switches() {
		e, err := Attach(n, id, Config{Sampling: sampling, Seed: 1, Sample: func(s *portstat.Sample, _ []byte) {
			if s.Has.All(portstat.HasDrop) {
				r.drops[s.Drop]++
				return
			}
			r.samples[s.Node] += uint64(s.Rate)
		}})
		if err != nil {
			t.Fatal(err)
		}
		all[id] = e
		if err := e.Every(interval, 0, r.add); err != nil {
			t.Fatal(err)
		}
	}
	return r, all
}

func (r *recorded) add(in *portstat.Reading) {
	c := r.sum[in.Port]
	if c == nil {
		c = &portstat.Counters{}
		r.sum[in.Port] = c
	}
	c.RxPackets, c.TxPackets = c.RxPackets+in.RxPackets, c.TxPackets+in.TxPackets
	c.RxBytes, c.TxBytes = c.RxBytes+in.RxBytes, c.TxBytes+in.TxBytes
	c.FCSErrors += in.FCSErrors
	c.Class[3].RxPaused += in.Class[3].RxPaused
	c.Class[3].RxTransitions += in.Class[3].RxTransitions
	c.Class[3].RxPauses += in.Class[3].RxPauses
	r.peak[in.Port] = max(r.peak[in.Port], in.Class[3].QueueWatermark)
}

// TestReadingsAddUp: readings of every interval sum up to the totals, both ends of
// a link count the same packets, and the samples of a switch are its packets.
func TestReadingsAddUp(t *testing.T) {
	for _, interval := range []time.Duration{100 * time.Microsecond, 700 * time.Microsecond} {
		n := fabric(t)
		r, all := record(t, n, 1, interval)
		n.Run(42 * 7 * 100 * engine.Microsecond) // a multiple of both; all flows have ended
		for id, e := range all {
			received := uint64(0)
			for i := range e.ports {
				at := model.Port{Node: id, Port: model.PortID(i + 1)}
				var c portstat.Counters
				e.Totals(at.Port, &c)
				sum := r.sum[at]
				if sum.RxPackets != c.RxPackets || sum.TxPackets != c.TxPackets || sum.RxBytes != c.RxBytes || sum.TxBytes != c.TxBytes {
					t.Fatalf("port %v: readings of %v sum up to %+v; want %+v", at, interval, *sum, c)
				}
				received += c.RxPackets
				if peer := n.Fabric().Port(at).Peer; all[peer.Node] != nil {
					var far portstat.Counters
					all[peer.Node].Totals(peer.Port, &far)
					if far.RxPackets != c.TxPackets || far.RxBytes != c.TxBytes {
						t.Errorf("%v sent %d packets of %d bytes, %v received %d of %d", at, c.TxPackets, c.TxBytes, peer, far.RxPackets, far.RxBytes)
					}
				}
			}
			if r.samples[id] != received || received == 0 {
				t.Errorf("switch %d: %d samples of 1:1, %d packets", id, r.samples[id], received)
			}
		}
	}
}

// TestSamplesEstimatePackets: one of 64 packets estimates the packets of all
// switches within five standard deviations.
func TestSamplesEstimatePackets(t *testing.T) {
	n := fabric(t)
	r, all := record(t, n, 64, time.Millisecond)
	n.Run(30 * engine.Millisecond)
	packets, scaled := 0.0, 0.0
	for id, e := range all {
		for i := range e.ports {
			packets += float64(e.ports[i].rxPackets)
		}
		scaled += float64(r.samples[id])
	}
	// Gaps are uniform with mean 64: their standard deviation is 37.
	if allowed := 5 * 37 * math.Sqrt(packets/64); math.Abs(scaled-packets) > allowed || packets < 1e5 {
		t.Errorf("%.0f packets, estimated as %.0f; want within %.0f", packets, scaled, allowed)
	}
}

// TestFaultsShowInCounters: a storm is pause time of one transition, a blackhole is
// drops with their reason, a bad cable is errors of the receiving port, and what is
// lost silently is in no counter.
func TestFaultsShowInCounters(t *testing.T) {
	n := fabric(t)
	f := n.Fabric()
	r, _ := record(t, n, 16, 500*time.Microsecond)
	host := f.Hosts()[0]
	tor := f.Node(host).Ports[0].Peer
	bad := f.Node(f.Hosts()[15]).Ports[0].Peer // of the switch; the host is its receiver
	up := model.Port{Node: bad.Node, Port: 4}  // to a leaf
	for _, in := range []sim.Injection{
		{At: model.Time(time.Millisecond), For: time.Millisecond, Fault: sim.Storm{Host: host, Priority: 3}},
		{At: 0, Fault: sim.CorruptTable{Switch: f.Node(f.Hosts()[5]).Ports[0].Peer.Node, Share: 0.3}},
		{At: 0, Fault: sim.Lossy{Port: up, Share: 0.1, Damaged: true}},
	} {
		if err := n.Inject(in); err != nil {
			t.Fatal(err)
		}
	}
	n.Run(6 * engine.Millisecond)
	c := r.sum[tor].Class[3]
	if d := c.RxPaused - time.Millisecond; d < -20*time.Microsecond || d > 20*time.Microsecond || c.RxTransitions != 1 || c.RxPauses < 2 {
		t.Errorf("storm of 1ms: %v paused by %d frames in %d transitions; want 1ms, several, 1", c.RxPaused, c.RxPauses, c.RxTransitions)
	}
	if r.drops[portstat.BlackholeRoute] == 0 {
		t.Errorf("drops %v; want some by a blackhole route", r.drops)
	}
	if r.sum[f.Port(up).Peer].FCSErrors == 0 || r.sum[up].FCSErrors != 0 {
		t.Errorf("bad cable: %d FCS errors at the receiver, %d at the sender", r.sum[f.Port(up).Peer].FCSErrors, r.sum[up].FCSErrors)
	}
	if r.peak[tor] == 0 {
		t.Error("the queue of a paused port has no watermark")
	}
}

func TestAttachRefusesHosts(t *testing.T) {
	n := fabric(t)
	if _, err := Attach(n, n.Fabric().Hosts()[0], Config{}); err == nil {
		t.Error("Attach(host) = nil; want an error")
	}
}
