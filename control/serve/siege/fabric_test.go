package siege

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/realtime"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// honestScenario is a fabric that a machine of two cores plays in real time beside
// a service and its attackers. Its lists are those of the service's plan.
var honestScenario = fmt.Sprintf(`
name: honest
about: A fabric that reports over real sockets while others attack the service.
duration: 1s # not read
topology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}
fabric: {mtu: 1024, buffer: 500KB}
telemetry:
  - {kind: flowset, slot: %v, flows: 60, ipv6: false}
  - {kind: label, interval: 100ms}
  - {kind: mirror, every: 20, flags: false, protocol: false, lists: 1}
  - {kind: epoch, length: 1ms, epochs: 2, flows: 1024, readout-time: 10ms, snapshot-reuse: 5ms}
management: {delay: 100us, jitter: 20us}
`, slot)

// slot is the length of the fabric's flowsets.
const slot = 100 * time.Millisecond

// honest is a simulated fabric whose clocks show the service's time and whose nodes
// report from addresses of their own.
type honest struct {
	*realtime.Fabric
	t     testing.TB
	s     *service
	conns map[model.NodeID]*net.UDPConn
	sent  atomic.Uint64 // reports
	slow  atomic.Int64  // how long the fabric's clock has waited for the fabric
	again func()        // the next round of an incast; nil: there is none
	bank  bank          // what others overhear

	// out is held while something is sent: an insider shares its node's sequence.
	out   sync.Mutex
	start model.Time // of the sequences
	next  map[model.NodeID]dta.Seq
	macs  map[model.NodeID]*dta.MAC
}

// incastEvery is the time from one incast to the next.
const incastEvery = 3 * time.Second

// newHonest makes the fabric of a service that runs.
func newHonest(s *service) *honest {
	t := s.t
	t.Helper()
	l := &honest{
		t: t, s: s, conns: map[model.NodeID]*net.UDPConn{},
		start: s.clock.model(), next: map[model.NodeID]dta.Seq{}, macs: map[model.NodeID]*dta.MAC{},
	}
	l.Fabric = realtime.New(t, realtime.Options{
		Scenario: honestScenario, Now: s.clock.now, Departure: s.clock.unlimited, Send: l.report, Step: l.repeat,
		Requests: s.lists.DiagnosisRequests.First, RepollInterval: 500 * time.Millisecond, HostInterval: 50 * time.Millisecond,
	})
	for _, n := range l.Network.Fabric().Nodes() {
		l.conns[n.ID] = dial(t, netip.AddrPortFrom(nodeAddress(n.ID), honestPort), s.DTA)
		l.macs[n.ID] = s.mac(n.ID)
	}
	return l
}

// honestPort is the source port of the honest nodes' reports. Attackers know it,
// and share it: that is what a spoofed source is.
const honestPort = 40041

// dial makes a UDP socket with a source that others may have, too.
func dial(t testing.TB, from, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(from), Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		if err != nil {
			return err
		}
		return failed
	}}
	conn, err := d.DialContext(context.Background(), "udp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.UDPConn)
}

// play runs the fabric until the returned function is called. Then time passes without
// the fabric.
func (l *honest) play() (stop func()) {
	end := l.Start()
	stop = func() { end(); l.s.clock.limit.Store(0) }
	l.t.Cleanup(stop)
	return stop
}

// repeat begins the next round of an incast.
func (l *honest) repeat(simulated time.Duration) {
	if l.again != nil && simulated/incastEvery != (simulated-time.Millisecond)/incastEvery {
		l.again()
	}
}

// report sends a datagram. Time waits for one that is late.
func (l *honest) report(at time.Time, from model.NodeID, datagram []byte) {
	l.slow.Add(int64(l.s.clock.leaves(at)))
	if sent := l.transmit(from, datagram); sent != nil {
		l.bank.overhear(&l.s.lists, from, sent, datagram)
	}
}

// transmit sends a datagram of version 1 from its node's socket, with the node's
// next sequence numbers and its MAC if it has a key, and returns what it sent.
func (l *honest) transmit(from model.NodeID, datagram []byte) (sent []byte) {
	l.out.Lock()
	defer l.out.Unlock()
	var h dta.Header
	n, err := h.Parse(datagram)
	if err != nil {
		l.t.Error(err)
		return nil
	}
	h.Seq = l.next[from]
	l.next[from] += dta.Seq(h.Count)
	sent = append(h.AppendTo(nil), datagram[n:]...)
	if mac := l.macs[from]; mac != nil {
		if sent, err = mac.AppendSigned(nil, sent, l.start, l.s.clock.model()); err != nil {
			l.t.Error(err)
			return nil
		}
	}
	if _, err := l.conns[from].Write(sent); err == nil { // the service may have been killed
		l.sent.Add(uint64(h.Count))
	}
	return sent
}

// pause has nothing be sent while f runs. What was due meanwhile leaves late.
func (l *honest) pause(f func()) {
	l.out.Lock()
	defer l.out.Unlock()
	f()
}

// flow is UDP at a rate that congests no queue, for ever.
func (l *honest) flow(from, to model.NodeID, port uint16) traffic.Flow {
	now := l.Network.Now().Model()
	return traffic.Flow{
		Src: from, Dst: to, Start: now, Stop: now.Add(24 * time.Hour), SrcPort: port,
		Transport: traffic.UDP, Rate: model.Mbps,
	}
}

// Of the flows between all pods: the first source port, and how far the destination
// is from the source in the list of hosts.
const (
	chatterPort = 20000
	chatterTo   = 5
)

// chatter is a little traffic between all pods.
func (l *honest) chatter() { l.Chatter(chatterPort, chatterTo, l.flow) }

// place is a host of a pod, its switch, and a switch of the second tier above.
type place struct{ host, tor, above model.NodeID }

func (l *honest) place(pod int) place { return placeIn(l.Network.Fabric(), pod) }

// placeIn finds the place in a pod, the n-th of the fabric.
func placeIn(f *topo.Fabric, pod int) (p place) {
	hosts := f.Hosts()
	p.host = hosts[pod*len(hosts)/4]
	p.tor = f.Node(p.host).Ports[0].Peer.Node
	for _, port := range f.Node(p.tor).Ports {
		if f.Node(port.Peer.Node).Tier == 2 {
			p.above = port.Peer.Node
		}
	}
	return p
}
