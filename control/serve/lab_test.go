package serve

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/realtime"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// labScenario is a fabric that a busy machine can play in real time: slow links
// with little on them. Its lists are those of the plan, in the same order.
const labScenario = `
name: sockets
about: A fabric whose reports leave the simulator by real sockets.
duration: 1s # not read
topology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}
fabric: {mtu: 1024, buffer: 2MB}
telemetry:
  - {kind: flowset, slot: 10ms, flows: 60, ipv6: false}
  - {kind: label, interval: 5ms}
  - {kind: mirror, every: 20, flags: false, protocol: true, lists: 1}
  - {kind: epoch, length: 1ms, epochs: 2, flows: 1024, readout-time: 10ms, snapshot-reuse: 5ms}
management: {delay: 100us, jitter: 20us}
`

// lab is a simulated fabric whose hosts and switches report to a service over sockets
// of their own.
type lab struct {
	*realtime.Fabric
	b     *bed
	conns map[model.NodeID]net.Conn
	// send takes what a node reports; by default it goes out as it is.
	send func(from model.NodeID, datagram []byte)
	late atomic.Int64 // the most that a datagram left after its time
}

// newLab makes a fabric. Its topology is that of testConfig.
func newLab(t *testing.T, b *bed) *lab {
	t.Helper()
	return newLabOf(t, b, labScenario)
}

// newLabOf makes the fabric of a scenario.
func newLabOf(t *testing.T, b *bed, text string) *lab {
	t.Helper()
	l := &lab{b: b, conns: map[model.NodeID]net.Conn{}}
	l.send = l.report
	l.Fabric = realtime.New(t, realtime.Options{
		Scenario: text, Now: time.Now, Send: func(at time.Time, from model.NodeID, datagram []byte) {
			l.late.Store(max(l.late.Load(), int64(time.Since(at))))
			l.send(from, datagram)
		},
		Requests: b.fabric.lists.DiagnosisRequests.First, RepollInterval: 10 * time.Millisecond, HostInterval: time.Millisecond,
	})
	if n, m := len(l.Network.Fabric().Nodes()), len(b.Fabric().Nodes()); n != m {
		t.Fatalf("a fabric of %d nodes is played, and one of %d watched", n, m)
	}
	return l
}

func (l *lab) name(id model.NodeID) string { return l.Network.Fabric().Node(id).Name }

// report sends a datagram from a node's own socket.
func (l *lab) report(from model.NodeID, datagram []byte) {
	conn := l.conns[from]
	if conn == nil {
		var err error
		if conn, err = net.Dial("udp", l.b.Reports().String()); err != nil {
			l.b.t.Fatal(err)
		}
		l.b.t.Cleanup(func() { conn.Close() })
		l.conns[from] = conn
	}
	_, _ = conn.Write(datagram) // the socket may be closed already
}

// flow is RDMA at a rate that congests no queue.
func (l *lab) flow(from, to model.NodeID, port uint16) traffic.Flow {
	now := l.Network.Now().Model()
	return traffic.Flow{
		Src: from, Dst: to, Start: now, Stop: now.Add(time.Minute), SrcPort: port, Priority: 3,
		Transport: traffic.RDMA, Rate: 5 * model.Mbps, NoCC: true,
	}
}

// chatter is a little traffic between all pods.
func (l *lab) chatter() { l.Chatter(20000, 5, l.flow) }

// flood adds flows from hosts of other pods to one.
func (l *lab) flood(to model.NodeID, each func(from model.NodeID, i int) traffic.Flow) {
	l.Change(func() error { return l.Network.AddFlows(l.FromOtherPods(to, each)) })
}

// reroute has switches forward what is for a host otherwise, from now on.
func (l *lab) reroute(host model.NodeID, entries ...sim.Entry) {
	for i := range entries {
		entries[i].To = netip.PrefixFrom(l.Network.Fabric().Node(host).IPv4.Netip(), 32)
	}
	l.Change(func() error {
		return l.Network.Inject(sim.Injection{At: l.Network.Now().Model(), Fault: sim.Reroute{Entries: entries}})
	})
}

// middle is a switch of the second tier, a host below it, and the switch of that
// host.
func (l *lab) middle() (sw, host, tor model.NodeID) {
	f := l.Network.Fabric()
	for _, id := range f.Switches() {
		if f.Node(id).Tier != 2 {
			continue
		}
		for _, h := range f.Hosts() {
			if tor := f.Node(h).Ports[0].Peer.Node; f.Node(tor).Pod == f.Node(id).Pod {
				return id, h, tor
			}
		}
	}
	panic("a fat-tree has them")
}
