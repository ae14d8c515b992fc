package siege

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
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

// honest is a simulated fabric whose clocks show the wall's time and whose nodes
// report from addresses of their own. The simulator works ahead of the wall's
// clock, and what is reported leaves when its time has come.
type honest struct {
	t     testing.TB
	s     *service
	base  time.Time // what clocks show when the run begins
	conns map[model.NodeID]*net.UDPConn
	polls map[model.NodeID]*dta.Writer
	sent  atomic.Uint64 // reports

	mu    sync.Mutex // of the network
	net   *sim.Network
	queue chan leaving
	slow  atomic.Int64 // how long the fabric's clock has waited for the fabric
	again func()       // the next round of an incast; nil: there is none
	bank  bank         // what others overhear

	// out is held while something is sent: an insider shares its node's sequence.
	out   sync.Mutex
	start model.Time // of the sequences
	next  map[model.NodeID]dta.Seq
	macs  map[model.NodeID]*dta.MAC
}

// leaving is a datagram in flight to a socket.
type leaving struct {
	at       time.Time
	from     model.NodeID
	datagram []byte
}

// incastEvery is the time from one incast to the next.
const incastEvery = 3 * time.Second

// ahead is how far the simulator works ahead.
const ahead = 300 * time.Millisecond

// newHonest makes the fabric of a service that runs.
func newHonest(s *service) *honest {
	t := s.t
	t.Helper()
	sc, err := scenario.Parse("honest.yaml", []byte(honestScenario))
	if err != nil {
		t.Fatal(err)
	}
	sc.Seed = 1
	l := &honest{
		t: t, s: s, conns: map[model.NodeID]*net.UDPConn{}, polls: map[model.NodeID]*dta.Writer{},
		base: s.clock.now().Add(ahead), queue: make(chan leaving, 1<<16),
		start: s.clock.model(), next: map[model.NodeID]dta.Seq{}, macs: map[model.NodeID]*dta.MAC{},
	}
	sc.Base = model.TimeOf(l.base)
	session, err := scenario.Open(sc, l.leave)
	if err != nil {
		t.Fatal(err)
	}
	l.net = session.Network
	for _, n := range l.net.Fabric().Nodes() {
		l.conns[n.ID] = dial(t, netip.AddrPortFrom(nodeAddress(n.ID), honestPort), s.DTA)
		l.macs[n.ID] = s.mac(n.ID)
	}
	l.watch()
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

// leave has a datagram leave at a time of the run.
func (l *honest) leave(at model.Time, from model.NodeID, datagram []byte) {
	l.queue <- leaving{l.base.Add(time.Duration(at)), from, slices.Clone(datagram)}
}

// play runs the fabric until the returned function is called.
func (l *honest) play() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(l.queue)
		for ctx.Err() == nil {
			l.mu.Lock()
			l.net.Run(l.net.Now() + engine.Of(time.Millisecond))
			now := l.net.Now()
			if l.again != nil && now.Duration()/incastEvery != (now.Duration()-time.Millisecond)/incastEvery {
				l.again()
			}
			l.mu.Unlock()
			if wait := l.base.Add(now.Duration() - ahead).Sub(l.s.clock.now()); wait > 10*time.Millisecond {
				time.Sleep(wait)
			}
		}
	})
	wg.Go(func() {
		for d := range l.queue {
			if ctx.Err() == nil {
				if wait := d.at.Sub(l.s.clock.unlimited()); wait > time.Millisecond { // a busy machine sleeps long
					time.Sleep(wait)
				}
				l.slow.Add(int64(l.s.clock.leaves(d.at)))
				l.report(d)
			}
		}
		l.s.clock.limit.Store(0) // time passes without the fabric
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); wg.Wait() }) }
	l.t.Cleanup(stop)
	return stop
}

// report sends a datagram.
func (l *honest) report(d leaving) {
	if sent := l.transmit(d.from, d.datagram); sent != nil {
		l.bank.overhear(&l.s.lists, d.from, sent, d.datagram)
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

// watch has hosts request diagnoses of slow flows.
func (l *honest) watch() {
	var configs []agent.Config
	for _, id := range l.net.Fabric().Hosts() {
		c := agent.DefaultConfig(id)
		c.RTTFactor, c.MinRepollInterval, c.MinHostInterval = 20, 500*time.Millisecond, 50*time.Millisecond
		configs = append(configs, c)
	}
	_, err := simhost.NewAgents(l.net, 100*time.Microsecond, configs, func(at model.Time, tr agent.DiagnosisRequest) {
		from := tr.Poll.Event.Host
		if l.polls[from] == nil {
			w := dta.NewWriter(from, 1)
			l.polls[from] = &w
		}
		w := l.polls[from]
		w.Begin(make([]byte, serve.MaxReport))
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: l.s.lists.DiagnosisRequests.First, Data: tr.Poll.AppendTo(nil)}); err != nil {
			l.t.Error(err)
			return
		}
		l.leave(at-model.TimeOf(l.base), from, w.Finish())
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// pause has nothing be sent while f runs. What was due meanwhile leaves late.
func (l *honest) pause(f func()) {
	l.out.Lock()
	defer l.out.Unlock()
	f()
}

// change has f do something to the fabric.
func (l *honest) change(f func() error) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := f(); err != nil {
		l.t.Fatal(err)
	}
}

// flow is UDP at a rate that congests no queue, for ever.
func (l *honest) flow(from, to model.NodeID, port uint16) traffic.Flow {
	now := l.net.Now().Model()
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

// chatter is a little traffic between all pods, so that every switch has
// something to report.
func (l *honest) chatter() {
	hosts := l.net.Fabric().Hosts()
	var list []traffic.Flow
	for i, from := range hosts {
		list = append(list, l.flow(from, hosts[(i+chatterTo)%len(hosts)], uint16(chatterPort+i)))
	}
	l.change(func() error { return l.net.AddFlows(list) })
}

// fromOtherPods are flows from hosts of other pods to one.
func (l *honest) fromOtherPods(to model.NodeID, each func(from model.NodeID, i int) traffic.Flow) (list []traffic.Flow) {
	f := l.net.Fabric()
	for i, from := range f.Hosts() {
		if f.Node(from).Pod != f.Node(to).Pod {
			list = append(list, each(from, i))
		}
	}
	return list
}

// place is a host of a pod, its switch, and a switch of the second tier above.
type place struct{ host, tor, above model.NodeID }

func (l *honest) place(pod int) place { return placeIn(l.net.Fabric(), pod) }

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
