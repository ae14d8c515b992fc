package live

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/livestate"
	"github.com/weft-telemetry/weft/inswitch/hostcount"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// countedScenario has traffic of two priorities, marks, labels on packets, and caches
// in which hosts collide.
const countedScenario = `
name: counted
about: An incast and TCP, counted for every host.
duration: 3ms
topology: {generate: {kind: fat-tree, k: 4, rate: 10Gb/s}}
fabric:
  mtu: 1024
  ecn: [{kmin: 10KB, kmax: 40KB, pmax: 20%}]
traffic:
  - {kind: incast, receivers: h12, senders: [h0, h1, h5, h9], fanin: 4, bytes: 100KB}
  - {kind: incast, receivers: h13, senders: [h2, h12], fanin: 2, bytes: 60KB, transport: tcp, priority: 1}
telemetry:
  - {kind: host-counters, period: 100us, places: 2} # sees packets with their labels
  - {kind: label, interval: 20us}
`

// hostTruth is what hosts sent and received, seen on the links to them.
type hostTruth map[model.NodeID]*[keyed.Classes]keyed.Counts

func watchHosts(n *sim.Network) hostTruth {
	truth := hostTruth{}
	for _, id := range n.Fabric().Hosts() {
		counts := &[keyed.Classes]keyed.Counts{}
		truth[id] = counts
		nic := n.Fabric().Node(id).Ports[0]
		tap := func(p *sim.Port, bytes keyed.Metric) {
			p.SetTap(func(_ engine.Time, pkt *sim.Packet) {
				if pkt.Kind == sim.KindPFC {
					return
				}
				size := uint64(pkt.Size) // the last switch has taken labels off
				counts[pkt.Priority][bytes] += size
				counts[pkt.Priority][bytes+1]++
				if bytes == keyed.ReceivedBytes && pkt.ECN == sim.CE {
					counts[pkt.Priority][keyed.ReceivedMarked]++
				}
			})
		}
		tap(n.Port(model.Port{Node: id, Port: nic.ID}), keyed.SentBytes)
		tap(n.Port(nic.Peer), keyed.ReceivedBytes)
	}
	return truth
}

// TestHostCountersEqualTheSimulators: what hosts sent and received is in memory, or in
// reports that were lost, exactly; and every lost report is counted.
func TestHostCountersEqualTheSimulators(t *testing.T) {
	for name, dropEvery := range map[string]int{"all arrive": 0, "every fifth datagram is lost": 5} {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Parse("counted.yaml", []byte(countedScenario))
			if err != nil {
				t.Fatal(err)
			}
			var collector *core.InProcessCollector
			lost, lostReports, datagrams := map[keyed.HostKey]uint64{}, uint64(0), 0
			last := map[model.NodeID][]byte{}
			session, err := scenario.Open(s, func(at model.Time, from model.NodeID, datagram []byte) {
				// The last datagram of a switch is never lost: nothing after it would
				// show that it is missing.
				if previous := last[from]; previous != nil {
					if datagrams++; dropEvery > 0 && datagrams%dropEvery == 0 {
						lostReports += sumReports(t, lost, previous)
					} else {
						collector.Receive(at, reporterAddr(from), previous)
					}
				}
				last[from] = append([]byte(nil), datagram...)
			})
			if err != nil {
				t.Fatal(err)
			}
			f := session.Network.Fabric()
			plan, err := livestate.PlanFor(f, livestate.Sizes{})
			if err != nil {
				t.Fatal(err)
			}
			lists := list.Config{Layout: list.Weft, Batch: 16, Classes: []list.Class{{Lists: 4, Entry: maxReport, Capacity: 1024, Sized: true}}}
			if collector, err = core.NewInProcessCollector(lists, plan, time.Millisecond); err != nil {
				t.Fatal(err)
			}
			defer collector.Close()
			memory, err := livestate.New(f, time.Unix(0, 0), collector.Memory())
			if err != nil {
				t.Fatal(err)
			}
			truth := watchHosts(session.Network)
			session.Network.Run(engine.Of(30 * time.Millisecond)) // all flows end; a period follows
			session.Settle()
			for from, datagram := range last {
				collector.Receive(model.Time(30*time.Millisecond), reporterAddr(from), datagram)
			}
			if dropEvery > 0 != (lostReports > 0) || collector.Intake().Missing < lostReports {
				t.Errorf("%d reports of counters were lost, and %d counted as missing; want all of them", lostReports, collector.Intake().Missing)
			}
			checkTruth(t, truth, lost, memory, session)
		})
	}
}

func checkTruth(t *testing.T, truth hostTruth, lost map[keyed.HostKey]uint64, memory *livestate.Memory, session *scenario.Session) {
	t.Helper()
	f := session.Network.Fabric()
	var all keyed.Counts
	for id, classes := range truth {
		n := f.Node(id)
		for class, want := range classes {
			all = all.Plus(want)
			got, err := memory.HostCounts(id, model.Priority(class))
			if err != nil {
				t.Fatal(err)
			}
			for m := range got {
				for _, a := range []model.Addr{n.IPv4, n.IPv6} {
					got[m] += lost[keyed.HostKey{
						Switch: n.Ports[0].Peer.Node, Host: a, Class: model.Priority(class), Metric: keyed.Metric(m),
					}]
				}
			}
			if got != want {
				t.Errorf("%s, class %d: collected and lost %v; want %v", n.Name, class, got, want)
			}
		}
	}
	var counted keyed.Counts
	var collisions uint64
	for _, programs := range session.Programs {
		for _, p := range programs {
			if p, ok := p.(*hostcount.Program); ok {
				counted = counted.Plus(p.Stats().Evicted)
				collisions += p.Stats().Collisions
			}
		}
	}
	if counted != all || all[keyed.ReceivedMarked] == 0 || collisions == 0 {
		t.Errorf("switches evicted %v of %v, after %d collisions; want all, some marked, and collisions", counted, all, collisions)
	}
}

// sumReports adds the counters of a datagram, and returns how many it has.
func sumReports(t *testing.T, sums map[keyed.HostKey]uint64, datagram []byte) (n uint64) {
	t.Helper()
	var r dta.Reader
	var one dta.Report
	for _ = r.Reset(datagram); r.Next(&one); {
		if one.Primitive != dta.KeyIncrement {
			continue
		}
		var key keyed.HostKey
		if err := key.Parse(one.Key); err != nil {
			t.Fatal(err)
		}
		sums[key] += one.Delta
		n++
	}
	return n
}

func reporterAddr(id model.NodeID) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(id >> 8), byte(id)}), 40040)
}
