package serve

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/dta"
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

// lab is a simulated fabric whose clocks show the wall's time and whose hosts
// and switches report to a service over sockets of their own. The simulator
// works a little ahead of the wall's clock, and what is reported leaves when its
// time has come: a simulator that stumbles does not bend the fabric's time.
type lab struct {
	b     *bed
	base  time.Time // what clocks show when the run begins
	conns map[model.NodeID]net.Conn
	polls map[model.NodeID]*dta.Writer
	// send takes what a node reports; by default it goes out as it is.
	send func(from model.NodeID, datagram []byte)

	mu    sync.Mutex // of the network
	net   *sim.Network
	queue chan leaving
	late  atomic.Int64 // the most that a datagram left after its time
}

// leaving is a datagram in flight to a socket.
type leaving struct {
	at       time.Time
	from     model.NodeID
	datagram []byte
}

// ahead is how far the simulator works ahead.
const ahead = 300 * time.Millisecond

// newLab starts a fabric. Its topology is that of testConfig.
func newLab(t *testing.T, b *bed) *lab {
	t.Helper()
	return newLabOf(t, b, labScenario)
}

// newLabOf starts the fabric of a scenario.
func newLabOf(t *testing.T, b *bed, text string) *lab {
	t.Helper()
	s, err := scenario.Parse("sockets.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s.Seed = 1
	l := &lab{
		b: b, conns: map[model.NodeID]net.Conn{}, polls: map[model.NodeID]*dta.Writer{},
		base: time.Now().Add(ahead), queue: make(chan leaving, 1<<16),
	}
	s.Base = model.TimeOf(l.base)
	l.send = l.report
	session, err := scenario.Open(s, func(at model.Time, from model.NodeID, datagram []byte) { l.leave(at, from, datagram) })
	if err != nil {
		t.Fatal(err)
	}
	l.net = session.Network
	if n, m := len(l.net.Fabric().Nodes()), len(b.Fabric().Nodes()); n != m {
		t.Fatalf("a fabric of %d nodes is played, and one of %d watched", n, m)
	}
	l.watch(t)
	return l
}

// leave has a datagram leave at a time of the run.
func (l *lab) leave(at model.Time, from model.NodeID, datagram []byte) {
	l.queue <- leaving{l.base.Add(time.Duration(at)), from, slices.Clone(datagram)}
}

// play starts the fabric, until the test ends.
func (l *lab) play() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(l.queue)
		for ctx.Err() == nil {
			l.mu.Lock()
			l.net.Run(l.net.Now() + engine.Of(time.Millisecond))
			now := l.net.Now()
			l.mu.Unlock()
			if wait := time.Until(l.base.Add(now.Duration() - ahead)); wait > 10*time.Millisecond {
				time.Sleep(wait)
			}
		}
	})
	wg.Go(func() {
		for d := range l.queue {
			if ctx.Err() == nil {
				if wait := time.Until(d.at); wait > time.Millisecond { // a busy machine sleeps long
					time.Sleep(wait)
				}
				l.late.Store(max(l.late.Load(), int64(time.Since(d.at))))
				l.send(d.from, d.datagram)
			}
		}
	})
	l.b.t.Cleanup(func() { cancel(); wg.Wait() })
}

func (l *lab) name(id model.NodeID) string { return l.net.Fabric().Node(id).Name }

// change has f do something to the fabric.
func (l *lab) change(f func() error) {
	l.b.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := f(); err != nil {
		l.b.t.Fatal(err)
	}
}

// watch has hosts request diagnoses of slow flows, by the same socket as everything.
func (l *lab) watch(t *testing.T) {
	var configs []agent.Config
	for _, id := range l.net.Fabric().Hosts() {
		c := agent.DefaultConfig(id)
		c.RTTFactor, c.MinRepollInterval, c.MinHostInterval = 20, 10*time.Millisecond, time.Millisecond
		configs = append(configs, c)
	}
	_, err := simhost.NewAgents(l.net, 100*time.Microsecond, configs, func(at model.Time, tr agent.DiagnosisRequest) {
		from := tr.Poll.Event.Host
		if l.polls[from] == nil {
			w := dta.NewWriter(from, 1)
			l.polls[from] = &w
		}
		w := l.polls[from]
		w.Begin(make([]byte, MaxReport))
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: l.b.fabric.lists.DiagnosisRequests.First, Data: tr.Poll.AppendTo(nil)}); err != nil {
			t.Error(err)
			return
		}
		l.leave(at-model.TimeOf(l.base), from, w.Finish())
	})
	if err != nil {
		t.Fatal(err)
	}
}

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
	now := l.net.Now().Model()
	return traffic.Flow{
		Src: from, Dst: to, Start: now, Stop: now.Add(time.Minute), SrcPort: port, Priority: 3,
		Transport: traffic.RDMA, Rate: 5 * model.Mbps, NoCC: true,
	}
}

// chatter is a little traffic between all pods, so that every switch has
// something to tell.
func (l *lab) chatter() {
	hosts := l.net.Fabric().Hosts()
	var list []traffic.Flow
	for i, from := range hosts {
		list = append(list, l.flow(from, hosts[(i+5)%len(hosts)], uint16(20000+i)))
	}
	l.change(func() error { return l.net.AddFlows(list) })
}

// flood adds flows from hosts of other pods to one.
func (l *lab) flood(to model.NodeID, each func(from model.NodeID, i int) traffic.Flow) {
	f := l.net.Fabric()
	l.change(func() error {
		var list []traffic.Flow
		for i, from := range f.Hosts() {
			if f.Node(from).Pod != f.Node(to).Pod {
				list = append(list, each(from, i))
			}
		}
		return l.net.AddFlows(list)
	})
}

// reroute has switches forward what is for a host otherwise, from now on.
func (l *lab) reroute(host model.NodeID, entries ...sim.Entry) {
	for i := range entries {
		entries[i].To = netip.PrefixFrom(l.net.Fabric().Node(host).IPv4.Netip(), 32)
	}
	l.change(func() error {
		return l.net.Inject(sim.Injection{At: l.net.Now().Model(), Fault: sim.Reroute{Entries: entries}})
	})
}

// middle is a switch of the second tier, a host below it, and the switch of that
// host.
func (l *lab) middle() (sw, host, tor model.NodeID) {
	f := l.net.Fabric()
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
