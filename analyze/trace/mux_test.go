package trace_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

var vip = model.AddrOf(netip.MustParseAddr("10.200.0.1"))

// newMuxLab has clients in rack 0, backends in rack 1 and a mux in rack 2, all
// below one spine.
func newMuxLab(t *testing.T, seed uint64, loss float64) (l *lab, mux, tor model.NodeID) {
	t.Helper()
	b := topo.NewBuilder("racks")
	link := topo.DefaultLinks().Fabric
	spine := b.AddNode(topo.NodeSpec{Name: "spine", Role: topo.Spine, Pod: topo.NoPod})
	var backends, clients []model.NodeID
	for rack := range 3 {
		tor = b.AddNode(topo.NodeSpec{Name: fmt.Sprintf("tor%d", rack), Role: topo.ToR, Pod: topo.NoPod})
		b.Connect(tor, spine, link)
		for i := range 2 {
			switch id := b.AddNode(topo.NodeSpec{Name: fmt.Sprintf("h%d%d", rack, i), Pod: topo.NoPod}); rack {
			case 0:
				clients = append(clients, id)
				b.Connect(id, tor, link)
			case 1:
				backends = append(backends, id)
				b.Connect(id, tor, link)
			default:
				b.Connect(id, tor, link)
			}
		}
	}
	mux = b.AddNode(topo.NodeSpec{Name: "mux", Role: topo.Mux, Pod: topo.NoPod, Nets: []netip.Prefix{netip.PrefixFrom(vip.Netip(), 32)}})
	b.Connect(mux, tor, link)
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	l = labOf(t, f, seed, lossy(loss))
	s := sim.Service{VIP: vip, Delay: 20 * time.Microsecond}
	for _, id := range backends {
		s.Backends = append(s.Backends, f.Node(id).IPv4)
	}
	if err := l.AddService(s); err != nil {
		t.Fatal(err)
	}
	var flows []traffic.Flow
	for i := range 40 {
		flows = append(flows, traffic.Flow{Src: clients[i%2], To: vip, Bytes: 20_000, Start: model.Time(i * 50_000), Transport: traffic.TCP, Rate: 2 * model.Gbps})
	}
	if err := l.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	return l, mux, tor
}

// TestTracesGoThroughAMux: a packet to a virtual address is one trace, to its
// mux and on to the backend in a tunnel; to pass the mux's switch twice is no
// loop; the time between is the mux's.
func TestTracesGoThroughAMux(t *testing.T) {
	for _, loss := range []float64{0, 0.2} {
		l, _, tor := newMuxLab(t, 3, loss)
		for _, a := range l.analyzers {
			a.AddCounter(trace.CustomCounter{Name: "service", Matches: func(t *trace.Trace) bool { return t.Key.Dst == vip }})
			a.AddCounter(trace.CustomCounter{Name: "none", Matches: func(t *trace.Trace) bool { return t.Key.Src == model.Addr4(0xc0000201) }})
			a.AddCounter(trace.CustomCounter{Name: "inside", Matches: func(t *trace.Trace) bool {
				_, src := l.Fabric().ByAddr(t.Key.Src)
				_, dst := l.Fabric().ByAddr(t.Key.Dst)
				return src && dst
			}})
		}
		if found := l.run(t); len(found) > 0 {
			t.Errorf("loss %v: findings in a healthy fabric: %+v", loss, found)
		}
		c := l.counters
		m := c.Mux[tor]
		if m == nil || m.Count < 100 || loss == 0 && (m.Min < 20*time.Microsecond || m.Mean() > 40*time.Microsecond) {
			t.Errorf("loss %v: mux latency %+v; want 20 µs and a little", loss, m)
		}
		if loss == 0 && (c.Lost != 0 || c.Looped != 0 || c.Arrived != c.Traces || c.MirrorsLost != 0) {
			t.Errorf("%+v; want all packets arrived", c)
		}
		service := c.Custom["service"]
		if service == nil || service.Packets < 400 || service.Flows.Count() < 30 || service.Flows.Count() > 50 || c.Custom["none"] != nil || c.Custom["inside"] != nil {
			t.Errorf("loss %v: counters %v; want 40 flows of the service, and nothing else", loss, c.Custom)
		}
	}
}

// TestMuxThatDropsIsFound: the packet is last seen at its switch, on the path to
// it. Nothing but SYNs is sent, 59 of them that are seen there; they are apart,
// so that it is enough with a fifth of the mirrors lost.
func TestMuxThatDropsIsFound(t *testing.T) {
	for seed := range race.Less(uint64(10), 1) {
		for _, loss := range []float64{0, 0.2} {
			l, mux, tor := newMuxLab(t, seed, loss)
			l.inject(t, sim.MisdirectingMux{Host: mux, Share: 1, Seed: 1})
			found := l.run(t)
			if len(found) != 1 || found[0].Kind != trace.Drop || found[0].Switch != tor || found[0].Next != mux {
				t.Errorf("seed %d, loss %v: %+v; want a drop at %d towards %d", seed, loss, found, tor, mux)
			}
		}
	}
}

// TestAnalyzersShareTheWork: what several analyzers count adds up to what one
// would.
func TestAnalyzersShareTheWork(t *testing.T) {
	split, whole := newLab(t, 5, lossy(0)), newLab(t, 5, lossy(0))
	whole.analyzers[1] = whole.analyzers[0]
	for _, l := range []*lab{split, whole} {
		l.talk(t, 30)
		l.run(t)
	}
	a, b := split.counters, whole.counters
	if a.Traces != b.Traces || a.Arrived != b.Arrived || len(a.Links) != len(b.Links) || a.Traces == 0 {
		t.Fatalf("%d traces over %d links in two parts, %d over %d in one", a.Traces, len(a.Links), b.Traces, len(b.Links))
	}
	for port, load := range b.Links {
		if got := a.Links[port]; got == nil || *got != *load {
			t.Errorf("port %v: %+v in two parts, %+v in one", port, got, load)
		}
	}
	for port, want := range b.Latency {
		if got := a.Latency[port]; got == nil || *got != *want {
			t.Errorf("port %v: %+v in two parts, %+v in one", port, got, want)
		}
	}
}
