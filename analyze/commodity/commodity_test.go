package commodity

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
)

const (
	ms    = time.Millisecond
	class = 3
	round = 100 * ms
)

// bench is an analyzer of a fat-tree with k=4, and the readings of its next round.
type bench struct {
	t        testing.TB
	fabric   *topo.Fabric
	analyzer *Analyzer
	now      model.Time
	next     map[model.Port]*portstat.Reading
}

func newBench(t testing.TB) *bench {
	t.Helper()
	link := topo.LinkSpec{Rate: model.Gbps, Delay: time.Microsecond}
	f, err := topo.FatTree(4, topo.Links{Host: link, Fabric: link})
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(DefaultConfig(topo.NewIntent(routes)))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, fabric: f, analyzer: a, next: map[model.Port]*portstat.Reading{}}
	b.calm()
	return b
}

// calm fills the next round with readings of a fabric at 20 % load.
func (b *bench) calm() {
	for _, id := range b.fabric.Switches() {
		for i := range b.fabric.Node(id).Ports {
			p := model.Port{Node: id, Port: model.PortID(i + 1)}
			r := &portstat.Reading{Port: p, From: b.now, To: b.now.Add(round), Source: portstat.Simulated}
			r.Has = portstat.HasBytes | portstat.HasPackets | portstat.HasFCSErrors
			r.RxBytes, r.TxBytes, r.RxPackets, r.TxPackets = 25e5, 25e5, 2500, 2500
			r.DropReasons = portstat.ReasonSet(0).With(portstat.NoRoute).With(portstat.BlackholeRoute).With(portstat.TTLExpired)
			for c := range r.Class {
				r.Class[c].Has = portstat.HasRxPaused | portstat.HasTxPaused | portstat.HasQueueWatermark | portstat.HasECNMarked
			}
			b.next[p] = r
		}
	}
}

func (b *bench) port(ref string) model.Port {
	b.t.Helper()
	p, err := b.fabric.FindPort(ref)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) at(ref string) *portstat.Reading { return b.next[b.port(ref)] }

// pause pauses a port for a share of the round: both ends count it.
func (b *bench) pause(ref string, share float64) {
	p := b.port(ref)
	paused := time.Duration(share * float64(round))
	r := b.next[p]
	r.Class[class].RxPaused = paused
	r.TxBytes = min(r.TxBytes, uint64((1-share)*125e5))
	if share > 0 {
		r.Class[class].QueueWatermark = 400 * model.KB
	}
	if far := b.next[b.fabric.Port(p).Peer]; far != nil {
		far.Class[class].TxPaused = paused
	}
}

// sample adds packets of one flow that passed a switch.
func (b *bench) sample(in, out, src, dst string, n int) {
	b.t.Helper()
	s := portstat.Sample{
		Node: b.port(in).Node, In: b.port(in).Port, Out: b.port(out).Port, At: b.now, Has: portstat.HasPriority, Priority: class,
		Flow: b.flow(src, dst), Bytes: 4000, Rate: 256,
	}
	for range n {
		b.analyzer.AddSample(&s)
	}
}

func (b *bench) flow(src, dst string) model.FlowKey {
	addr := func(name string) netip.AddrPort {
		id, ok := b.fabric.ByName(name)
		if !ok {
			b.t.Fatalf("no host %s", name)
		}
		return netip.AddrPortFrom(b.fabric.Node(id).IPv4.Netip(), 4791)
	}
	return model.NewFlowKey(addr(src), addr(dst), model.UDP)
}

// conclude ends the round and starts the next.
func (b *bench) conclude() []Verdict {
	for _, id := range b.fabric.Switches() {
		for i := range b.fabric.Node(id).Ports {
			b.analyzer.AddReading(b.next[model.Port{Node: id, Port: model.PortID(i + 1)}])
		}
	}
	list := b.analyzer.Conclude()
	b.now = b.now.Add(round)
	b.calm()
	return list
}

// expect wants one verdict of a cause at a node, and a text in its sentence.
func (b *bench) expect(list []Verdict, cause anomaly.Cause, node, text string) *Verdict {
	b.t.Helper()
	if len(list) != 1 || list[0].Cause != cause || b.fabric.Node(list[0].Location.Node).Name != node ||
		!strings.Contains(list[0].Text, text) {
		b.t.Fatalf("%d verdicts: %+v; want one: %v at %s, %q", len(list), list, cause, node, text)
	}
	return &list[0]
}

func (b *bench) expectNone(list []Verdict) {
	b.t.Helper()
	if len(list) != 0 {
		b.t.Fatalf("verdicts %+v; want none", list)
	}
}

func TestCalmFabricHasNoVerdict(t *testing.T) {
	b := newBench(t)
	for range 20 {
		b.expectNone(b.conclude())
	}
}

// TestStorm: a host that pauses its port all the time is a storm once two intervals
// show it; the ports that wait for it are those that its switch pauses, and so on
// upstream. Afterwards nothing is left.
func TestStorm(t *testing.T) {
	b := newBench(t)
	stormed := func() {
		b.sample("tor0:Ethernet8", "tor0:Ethernet0", "h4", "h0", 5)
		b.sample("leaf0:Ethernet8", "leaf0:Ethernet0", "h4", "h0", 5)
		b.pause("tor0:Ethernet0", 1)
		b.pause("leaf0:Ethernet0", 0.95) // to tor0
	}
	b.conclude()
	stormed()
	b.expectNone(b.conclude()) // one interval may be its edge
	stormed()
	v := b.expect(b.conclude(), anomaly.Storm, "h0", "PFC storm: h0 pauses tor0 Ethernet0")
	if v.Interval != round || v.From != model.Time(round) || v.To != model.Time(3*round) {
		t.Errorf("storm from %v to %v by %v; want the two intervals from +100ms", v.From, v.To, v.Interval)
	}
	if want := []model.Port{b.port("leaf0:Ethernet0")}; !slices.Equal(v.Waiting, want) {
		t.Errorf("waiting %v; want %v", v.Waiting, want)
	}
	first := v.Confidence
	stormed()
	if v = b.expect(b.conclude(), anomaly.Storm, "h0", "1 port waits"); v.Confidence <= first {
		t.Errorf("confidence %v after a third interval, %v before; want more", v.Confidence, first)
	}
	b.expectNone(b.conclude())
	b.expectNone(b.conclude())
}

// TestSlowReceiver: the same pauses with traffic in between.
func TestSlowReceiver(t *testing.T) {
	b := newBench(t)
	for i := range 3 {
		b.at("tor0:Ethernet0").TxBytes = 50e5
		b.pause("tor0:Ethernet0", 0.6)
		if list := b.conclude(); i > 0 {
			b.expect(list, anomaly.SlowReceiver, "h0", "receives 40 % of the link's rate")
		}
	}
}

// TestWatchdogIsEnough: what the PFC watchdog says needs no second interval.
func TestWatchdogIsEnough(t *testing.T) {
	b := newBench(t)
	c := &b.at("tor0:Ethernet0").Class[class]
	c.Has |= portstat.HasWatchdog
	c.Watchdog, c.Storms = portstat.Stormed, 1
	b.expect(b.conclude(), anomaly.Storm, "h0", "PFC storm")
}

// congest makes hosts of another pod congest h0's port.
func (b *bench) congest(samples int, senders ...string) {
	q := b.at("tor0:Ethernet0")
	q.TxBytes = 124e5
	q.Class[class].QueueWatermark = 500 * model.KB
	for _, s := range senders {
		b.sample("tor0:Ethernet8", "tor0:Ethernet0", s, "h0", samples)
	}
	b.sample("tor0:Ethernet8", "tor0:Ethernet4", "h9", "h1", 1)
	b.pause("leaf0:Ethernet0", 0.6)
}

// TestIncast: the queue that others wait for and that waits for nobody, its culprits
// by samples, scaled to the byte counter of the port.
func TestIncast(t *testing.T) {
	b := newBench(t)
	senders := []string{"h4", "h5", "h6", "h7", "h8", "h10", "h11", "h12", "h13", "h14"}
	b.congest(5, senders...)
	b.expectNone(b.conclude())
	b.congest(5, senders...)
	b.expect(b.conclude(), anomaly.Contention, "tor0", "8 flows of 8 senders to h0 congest tor0 Ethernet0")
	b.congest(5, senders...)
	v := b.expect(b.conclude(), anomaly.Incast, "tor0", "8 flows of 8 senders to h0 congest tor0 Ethernet0")
	if v.Location != b.port("tor0:Ethernet0") || !v.HasReceiver || b.fabric.Node(v.Receiver).Name != "h0" {
		t.Errorf("%+v; want tor0/Ethernet0 and receiver h0", v)
	}
	sum := uint64(0)
	for _, c := range v.Culprits {
		sum += c.Bytes
	}
	if sum != 124e5*8/10 || v.Culprits[0].Samples != 5 {
		t.Errorf("culprits sent %d bytes, the first by %d samples; want four fifths of the port's 12400000 by 5", sum, v.Culprits[0].Samples)
	}
	e := b.analyzer.Evidence(v, b.now)
	if e.Source != anomaly.Counters || !e.AtReceiver || len(e.Culprits) != 8 || !e.Confirmed || e.Interval != round {
		t.Errorf("evidence %+v; want counters, at the receiver, 8 culprits, confirmed, the interval", e)
	}
}

// TestFewSendersAreContention: two senders are no incast, and four only if they congest the
// queue for longer than they would by chance.
func TestFewSendersAreContention(t *testing.T) {
	b := newBench(t)
	four := []string{"h4", "h5", "h6", "h7"}
	b.congest(5, four...)
	b.conclude()
	for range 2 {
		b.congest(5, four...)
		b.expect(b.conclude(), anomaly.Contention, "tor0", "4 flows of 4 senders to h0")
	}
	b.congest(5, four...)
	b.expect(b.conclude(), anomaly.Incast, "tor0", "4 flows of 4 senders to h0")

	b = newBench(t)
	b.congest(9, "h4", "h5")
	b.conclude()
	b.congest(9, "h4", "h5")
	b.expect(b.conclude(), anomaly.Contention, "tor0", "2 flows of 2 senders to h0")
}

// TestIdleQueueHoldsNothing: a queue that neither sent nor was paused cannot hold
// anybody back, however deep it was at some time.
func TestIdleQueueHoldsNothing(t *testing.T) {
	b := newBench(t)
	for range 4 {
		b.congest(5, "h4", "h5", "h6", "h7")
		b.at("tor0:Ethernet0").TxBytes = 12e5
		b.expectNone(b.conclude())
	}
}

// TestBacklogOfAStormIsNoIncast: the queue of a host that just stopped to pause is
// deep, and no new fault.
func TestBacklogOfAStormIsNoIncast(t *testing.T) {
	b := newBench(t)
	for range 3 {
		b.congest(5, "h4", "h5", "h6", "h7")
		b.pause("tor0:Ethernet0", 1)
		b.conclude()
	}
	b.congest(5, "h4", "h5", "h6", "h7")
	b.expectNone(b.conclude())
	b.congest(5, "h4", "h5", "h6", "h7")
	b.expectNone(b.conclude())
}

// TestDeadlock: four ports that wait for each other in a cycle and do not send.
func TestDeadlock(t *testing.T) {
	b := newBench(t)
	cycle := func() {
		// tor0 > leaf0 > tor1 > leaf1 > tor0: a valley in the routes.
		ports := []string{"tor0:Ethernet8", "leaf0:Ethernet4", "tor1:Ethernet12", "leaf1:Ethernet0"}
		into := []string{"leaf0:Ethernet0", "tor1:Ethernet8", "leaf1:Ethernet4", "tor0:Ethernet12"}
		for i, p := range ports {
			b.pause(p, 1)
			b.sample(into[i], ports[(i+1)%4], "h4", "h0", 4)
		}
	}
	cycle()
	b.expectNone(b.conclude())
	cycle()
	v := b.expect(b.conclude(), anomaly.Deadlock, "tor0", "4 ports wait for each other")
	if len(v.Waiting) != 4 || len(v.Extent) != 4 {
		t.Errorf("cycle %v of nodes %v; want 4 ports of 4 switches", v.Waiting, v.Extent)
	}
}

func TestDropsByReason(t *testing.T) {
	b := newBench(t)
	b.at("leaf1:Ethernet0").Drops[portstat.BlackholeRoute] = 7
	b.analyzer.AddSample(&portstat.Sample{
		Node: b.port("leaf1:Ethernet0").Node, In: 1, Has: portstat.HasDrop, Drop: portstat.BlackholeRoute, Rate: 1, Flow: b.flow("h0", "h4"),
	})
	v := b.expect(b.conclude(), anomaly.Blackhole, "leaf1", `leaf1 drops packets: 7 by reason "blackhole route"`)
	if v.Packets != 7 || len(v.Flows) != 1 {
		t.Errorf("%+v; want 7 packets and one flow", v)
	}
	b = newBench(t) // a switch that counts no reasons, and notifies
	leaf := b.port("leaf1:Ethernet0").Node
	for p := range b.fabric.Node(leaf).Ports {
		r := b.next[model.Port{Node: leaf, Port: model.PortID(p + 1)}]
		r.DropReasons, r.Has, r.RxDiscards = 0, r.Has|portstat.HasDiscards, 1
	}
	for range 3 {
		b.analyzer.AddSample(&portstat.Sample{Node: leaf, In: 1, Has: portstat.HasDrop, Drop: portstat.NoRoute, Rate: 1, Flow: b.flow("h0", "h4")})
	}
	b.expect(b.conclude(), anomaly.Blackhole, "leaf1", `leaf1 drops packets: 3 by reason "no route"`)

	b = newBench(t)
	for i := range 4 {
		r := b.at("leaf1:Ethernet0")
		r.DropReasons, r.Has = r.DropReasons.With(portstat.NoBuffer), r.Has|portstat.HasDiscards
		r.Drops[portstat.NoBuffer], r.TxDiscards = 5, 5
		if list := b.conclude(); i == 3 {
			b.expect(list, anomaly.Contention, "leaf1", "leaf1 drops packets: 20 as its buffer is full")
		}
	}
	b = newBench(t)
	for i := range 4 {
		for p := range b.fabric.Node(b.port("leaf1:Ethernet0").Node).Ports {
			r := b.next[model.Port{Node: b.port("leaf1:Ethernet0").Node, Port: model.PortID(p + 1)}]
			r.DropReasons, r.Has, r.RxDiscards = 0, r.Has|portstat.HasDiscards, 2
		}
		if list := b.conclude(); i == 3 {
			v := b.expect(list, anomaly.Loss, "leaf1", "leaf1 drops packets: 32, for a reason that it does not export")
			if e := b.analyzer.Evidence(v, b.now); e.LostPackets != 8 {
				t.Errorf("evidence of %d lost packets; want the 8 of the last round", e.LostPackets)
			}
		}
	}
	b = newBench(t)
	for i := range 4 {
		b.at("leaf1:Ethernet0").Drops[portstat.TTLExpired] = 500
		if list := b.conclude(); i == 3 {
			b.expect(list, anomaly.Loop, "leaf1", "Possible forwarding loop")
		}
	}
}

// TestLinks: errors of the receiving end, and packets that only one end counted.
func TestLinks(t *testing.T) {
	b := newBench(t)
	b.at("leaf1:Ethernet0").FCSErrors = 3
	b.expect(b.conclude(), anomaly.Loss, "leaf1", "Link errors: leaf1 Ethernet0")

	b = newBench(t)
	var list []Verdict
	for range 5 {
		b.at("leaf1:Ethernet0").RxPackets -= 100 // 4 % of what tor0 sent
		list = b.conclude()
	}
	v := b.expect(list, anomaly.Loss, "tor0", "12500 packets sent, 12000 received")
	if v.Location != b.fabric.Port(b.port("leaf1:Ethernet0")).Peer {
		t.Errorf("location %v; want the sending end", v.Location)
	}
}

// TestImbalance: flows that a random hash would spread all take one of two ports.
func TestImbalance(t *testing.T) {
	b := newBench(t)
	found := false
	for range 8 {
		for i := range 40 {
			f := b.flow("h0", "h12")
			f.SrcPort = uint16(1000 + i)
			b.analyzer.AddSample(&portstat.Sample{
				Node: b.port("tor0:Ethernet8").Node, In: 1, Out: b.port("tor0:Ethernet8").Port, At: b.now, Flow: f, Bytes: 4000, Rate: 256,
			})
		}
		for _, v := range b.conclude() {
			found = found || v.Cause == anomaly.Imbalance && strings.Contains(v.Text, "hash polarization")
		}
	}
	if !found {
		t.Error("40 flows on one of two equal-cost ports: no imbalance")
	}
}
