package audit

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
)

const slot = 10 * time.Millisecond

// rig is a fabric on which flows send at a rate of their own, and whose switches count them.
// Sources may be wrong.
type rig struct {
	*Auditor
	fabric *topo.Fabric
	ports  *paths.Ports
	rng    *rand.Rand
	flows  []rigFlow
	tx, rx map[model.Port]*portTotals // what ports sent and received
	pool   map[model.Port]float64     // what samplers of ports saw

	flowset map[model.NodeID]float64      // factor of what a flowset counts
	counter map[Source]float64            // factor of a counter
	lossy   map[model.Port]float64        // share that is lost after a port
	muted   func(Source, model.Time) bool // a source that sends nothing; nil: all do
	last    map[model.Port]model.Time     // reading
}

type portTotals struct{ packets, bytes float64 }

type rigFlow struct {
	key  model.FlowKey
	hops []model.Port // that it leaves switches by
	rate uint64       // packets in a slot
}

func newRig(t testing.TB, seed uint64) *rig {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		fabric: f, ports: paths.NewPorts(f), rng: rand.New(rand.NewPCG(seed, 1)), tx: map[model.Port]*portTotals{}, rx: map[model.Port]*portTotals{},
		flowset: map[model.NodeID]float64{}, counter: map[Source]float64{}, lossy: map[model.Port]float64{}, pool: map[model.Port]float64{}, last: map[model.Port]model.Time{},
	}
	if r.Auditor, err = New(DefaultConfig(r.ports, slot)); err != nil {
		t.Fatal(err)
	}
	hosts := f.Hosts()
	for i := range 200 {
		src, dst := f.Node(hosts[i%len(hosts)]), f.Node(hosts[r.rng.IntN(len(hosts))])
		if src == dst {
			continue
		}
		one := rigFlow{rate: 50 + r.rng.Uint64N(100), key: model.FlowKey{Src: src.IPv4, Dst: dst.IPv4, Proto: model.UDP, SrcPort: uint16(i), DstPort: 4791}}
		for at := src.Ports[0].Peer.Node; at != dst.ID; {
			out, ok := routes.NextHop(at, one.key)
			if !ok {
				t.Fatalf("no route from %s to %s", f.Node(at).Name, dst.Name)
			}
			one.hops = append(one.hops, model.Port{Node: at, Port: out})
			at = f.Port(model.Port{Node: at, Port: out}).Peer.Node
		}
		r.flows = append(r.flows, one)
	}
	return r
}

func factor[K comparable](m map[K]float64, k K) float64 {
	if f, ok := m[k]; ok {
		return f
	}
	return 1
}

// run simulates slots, with readings of counters every 100 ms.
func (r *rig) run(from, to int64) {
	for n := from; n < to; n++ {
		decoded := map[model.NodeID]*flows.Decoded{}
		for i := range r.flows {
			f := &r.flows[i]
			count := float64(f.rate + r.rng.Uint64N(20))
			in := r.fabric.Node(mustByAddr(r.fabric, f.key.Src)).Ports[0].Peer
			for _, out := range f.hops {
				add(r.rx, in, count)
				r.pool[in] += count * factor(r.counter, Source{Port: in, Kind: Pool})
				add(r.tx, out, count)
				d := decoded[out.Node]
				if d == nil {
					d = &flows.Decoded{Switch: out.Node, Start: model.Time(n * int64(slot)), Length: slot}
					decoded[out.Node] = d
				}
				seen := count*factor(r.flowset, out.Node) + r.rng.Float64()
				d.Records = append(d.Records, flows.Record{Key: f.key, Packets: uint64(seen), Bytes: uint64(seen) * 1000, In: in.Port, Out: out.Port, Grade: flows.Exact})
				count *= 1 - r.lossy[out]
				in = r.fabric.Port(out).Peer
			}
		}
		m := paths.NewMap(n, slot)
		var list []flows.Decoded
		for _, id := range slices.Sorted(maps.Keys(decoded)) {
			if r.muted != nil && r.muted(Source{Port: model.Port{Node: id}}, model.Time(n*int64(slot))) {
				continue
			}
			list = append(list, *decoded[id])
		}
		for i := range list {
			m.Reports.Add(&list[i])
			m.AddFlowset(&list[i])
		}
		m.OrderPaths(r.ports, nil)
		r.sample(model.Time((n + 1) * int64(slot)))
		r.AddSlot(n, list, []*paths.Map{m})
		if at := model.Time((n + 1) * int64(slot)); n%10 == 9 {
			r.read(at)
		}
	}
}

func mustByAddr(f *topo.Fabric, a model.Addr) model.NodeID {
	id, ok := f.ByAddr(a)
	if !ok {
		panic("an address of the fabric")
	}
	return id
}

func add(m map[model.Port]*portTotals, p model.Port, n float64) {
	if m[p] == nil {
		m[p] = &portTotals{}
	}
	m[p].packets += n
	m[p].bytes += n * 1000
}

// sample takes a sample of the packets that each port received.
func (r *rig) sample(at model.Time) {
	for _, id := range r.fabric.Switches() {
		for _, p := range r.fabric.Node(id).Ports {
			r.AddSample(&portstat.Sample{
				Node: id, In: p.ID, At: at, Source: portstat.SFlow, Has: portstat.HasPool, Rate: 1000, Pool: uint64(r.pool[model.Port{Node: id, Port: p.ID}]),
			})
		}
	}
}

// read reads all counters since the last time.
func (r *rig) read(at model.Time) {
	for _, id := range r.fabric.Switches() {
		for _, p := range r.fabric.Node(id).Ports {
			port := model.Port{Node: id, Port: p.ID}
			if r.muted != nil && r.muted(Source{Port: port, Kind: TxPackets}, at) {
				continue
			}
			take := func(m map[model.Port]*portTotals, packets, bytes Kind) (uint64, uint64) {
				n := m[port]
				if n == nil {
					return 0, 0
				}
				a, b := n.packets*factor(r.counter, Source{Port: port, Kind: packets}), n.bytes*factor(r.counter, Source{Port: port, Kind: bytes})
				*n = portTotals{}
				return uint64(a), uint64(b)
			}
			reading := portstat.Reading{Port: port, From: r.last[port], To: at, Source: portstat.GNMI}
			reading.Has = portstat.HasPackets | portstat.HasBytes
			reading.TxPackets, reading.TxBytes = take(r.tx, TxPackets, TxBytes)
			reading.RxPackets, reading.RxBytes = take(r.rx, RxPackets, RxBytes)
			if r.last[port] != 0 {
				r.AddReading(&reading)
			}
			r.last[port] = at
		}
	}
}

func (r *rig) found() string {
	var list []string
	for _, f := range r.Findings() {
		place := r.fabric.Node(f.Port.Node).Name
		if f.Port.Port != 0 {
			place = r.fabric.PortRef(f.Port)
		}
		text := fmt.Sprintf("%s %v %v", place, f.Kind, f.State)
		if f.State == Lying {
			text += fmt.Sprintf(" %+.2f", f.Share)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// port is a port of a switch, by name.
func (r *rig) port(t *testing.T, from, to string) model.Port {
	t.Helper()
	id, _ := r.fabric.ByName(from)
	for _, p := range r.fabric.Node(id).Ports {
		if r.fabric.Node(p.Peer.Node).Name == to {
			return model.Port{Node: id, Port: p.ID}
		}
	}
	t.Fatalf("no port of %s to %s", from, to)
	return model.Port{}
}

func TestAuditor(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(r *rig, t *testing.T)
		want    string
	}{
		"all are right":            {func(*rig, *testing.T) {}, ""},
		"a link loses packets":     {func(r *rig, t *testing.T) { r.lossy[r.port(t, "tor0", "leaf0")] = 0.02 }, ""},
		"a link loses all packets": {func(r *rig, t *testing.T) { r.lossy[r.port(t, "leaf0", "spine0")] = 1 }, ""},
		"packets sent": {func(r *rig, t *testing.T) {
			r.counter[Source{Port: r.port(t, "tor0", "leaf0"), Kind: TxPackets}] = 0.99
		}, "tor0:Ethernet8 packets sent lying -0.01"},
		"bytes received": {func(r *rig, t *testing.T) {
			r.counter[Source{Port: r.port(t, "leaf1", "spine2"), Kind: RxBytes}] = 1.03
		}, "leaf1:Ethernet8 bytes received lying +0.03"},
		"a sampler sees too few": {func(r *rig, t *testing.T) {
			r.counter[Source{Port: r.port(t, "leaf1", "spine2"), Kind: Pool}] = 0.99
		}, "leaf1:Ethernet8 packets to sample lying -0.01"},
		"a sampler of a host's packets sees too many": {func(r *rig, t *testing.T) {
			r.counter[Source{Port: r.port(t, "tor0", "h0"), Kind: Pool}] = 1.02
		}, "tor0:Ethernet0 packets to sample lying +0.02"},
		"a sampler that sees nothing": {func(r *rig, t *testing.T) {
			r.counter[Source{Port: r.port(t, "leaf0", "tor1"), Kind: Pool}] = 0
		}, "leaf0:Ethernet4 packets to sample silent"},
		"packets received from a host": {func(r *rig, t *testing.T) {
			r.counter[Source{Port: r.port(t, "tor0", "h0"), Kind: RxPackets}] = 0.98
		}, "tor0:Ethernet0 packets received lying -0.02"},
		"packets sent to a host": {func(r *rig, t *testing.T) {
			r.counter[Source{Port: r.port(t, "tor0", "h1"), Kind: TxPackets}] = 1.02
		}, "tor0:Ethernet4 packets sent lying +0.02"},
		"a counter stands still": {func(r *rig, t *testing.T) {
			r.counter[Source{Port: r.port(t, "tor0", "leaf0"), Kind: TxPackets}] = 0
		}, "tor0:Ethernet8 packets sent silent"},
		"a flowset counts too few":  {func(r *rig, _ *testing.T) { r.flowset[r.fabric.Switches()[5]] = 0.98 }, "flowset lying -0.02"},
		"a flowset counts too many": {func(r *rig, _ *testing.T) { r.flowset[r.fabric.Switches()[9]] = 1.02 }, "flowset lying +0.02"},
		"a port's counters are not read": {func(r *rig, t *testing.T) {
			port := r.port(t, "tor0", "leaf0")
			r.muted = func(s Source, at model.Time) bool { return s.Port == port && at > model.Time(1300*time.Millisecond) }
		}, "tor0:Ethernet8 packets sent silent"},
		"a switch exports no flowset": {func(r *rig, _ *testing.T) {
			sw := model.Port{Node: r.fabric.Switches()[3]}
			r.muted = func(s Source, at model.Time) bool { return s.Port == sw && at > model.Time(1300*time.Millisecond) }
		}, "flowset silent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 7)
			tc.prepare(r, t)
			r.run(100, 200) // a second
			got := r.found()
			if strings.HasPrefix(tc.want, "flowset") {
				_, got, _ = strings.Cut(got, " ")
			}
			if got != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

// TestReset: totals that fall are named at once, and only as long as Hold.
func TestReset(t *testing.T) {
	r := newRig(t, 3)
	r.run(100, 110)
	port := r.port(t, "tor0", "leaf0")
	at := model.Time(1100 * time.Millisecond)
	r.AddTotals(&Totals{Port: port, At: at, HasBytes: true, TxBytes: 5000})
	r.AddTotals(&Totals{Port: port, At: at.Add(slot), HasBytes: true, TxBytes: 400})
	if got, want := r.found(), "tor0:Ethernet8 bytes sent resetting"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	r.run(110, 400)
	if got := r.found(); strings.Contains(got, "resetting") {
		t.Errorf("found %q after 3 s, want it forgotten", got)
	}
}

// TestSlotSumsEqualReference compares the sums of a slot with those of every flow by itself.
func TestSlotSumsEqualReference(t *testing.T) {
	r := newRig(t, 5)
	sums := newSlotSums(r.ports)
	for range 50 {
		sums.reset()
		in, out := map[model.Port]uint64{}, map[model.Port]uint64{}
		for i := range r.flows {
			f := &r.flows[i]
			var hops []paths.Sighting
			at := r.fabric.Node(mustByAddr(r.fabric, f.key.Src)).Ports[0].Peer
			for _, p := range f.hops[:r.rng.IntN(len(f.hops)+1)] {
				n := r.rng.Uint64N(100)
				hops = append(hops, paths.Sighting{Packets: n, Switch: p.Node, In: at.Port, Out: p.Port, Exact: true})
				in[at] += n
				out[p] += n
				at = r.fabric.Port(p).Peer
			}
			sums.addFlow(&f.key, hops)
		}
		for n := range uint32(r.ports.Len()) {
			s, p := &sums.sums[n], r.ports.Port(n)
			if s.in[packets] != in[p] || s.out[packets] != out[p] || s.unclear {
				t.Fatalf("port %v: %d in, %d out, unclear %v; want %d and %d, clear", p, s.in[packets], s.out[packets], s.unclear, in[p], out[p])
			}
		}
	}
}
