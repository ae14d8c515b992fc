package everflow

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	wire "github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// packetID identifies packets in these claims, tunnelled or not.
type packetID struct {
	key     model.FlowKey
	ip, seq uint32
}

// sharing counts where the mirrors of packets would go.
type sharing struct {
	of     map[packetID]map[uint32]bool // analyzers that get mirrors of a packet
	load   []uint64                     // mirrors of each analyzer
	byKey  func(p *packet.Packet) *model.FlowKey
	inTurn bool // to the analyzers one after the other, whatever the key
	next   uint32
	parsed packet.Packet
}

func newSharing(n int, byKey func(*packet.Packet) *model.FlowKey) *sharing {
	return &sharing{of: map[packetID]map[uint32]bool{}, load: make([]uint64, n), byKey: byKey}
}

func (s *sharing) addMirror(m *wire.Mirror) {
	p := &s.parsed
	if p.Parse(m.Frame) != nil || p.Depth == 0 {
		return
	}
	in := p.Innermost()
	id := packetID{in.Key, in.ID, in.Seq}
	if s.of[id] == nil {
		s.of[id] = map[uint32]bool{}
	}
	at := wire.Shard(s.byKey(p), uint32(len(s.load)))
	if s.inTurn {
		at = s.next % uint32(len(s.load))
		s.next++
	}
	s.of[id][at] = true
	s.load[at]++
}

// packetsAtOneAnalyzer returns how many packets have all their mirrors at one analyzer.
func (s *sharing) packetsAtOneAnalyzer() (n, of uint64) {
	for _, at := range s.of {
		of++
		if len(at) == 1 {
			n++
		}
	}
	return n, of
}

// busiest returns the largest load over the mean.
func (s *sharing) busiest() float64 {
	most, sum := uint64(0), uint64(0)
	for _, n := range s.load {
		most, sum = max(most, n), sum+n
	}
	return float64(most) * float64(len(s.load)) / float64(max(sum, 1))
}

func innermost(p *packet.Packet) *model.FlowKey { return &p.Innermost().Key }
func outermost(p *packet.Packet) *model.FlowKey { return &p.Outer.Key }

var reshuffle = claim.Claim{
	ID: "everflow-reshuffle", Where: "sections 3.2 and 4.1",
	Says:      "mirrors of the same 5-tuple come to the same analyzer, whatever the number of analyzers, and their load is balanced",
	Published: "the same analyzer; balanced",
	Mutations: []claim.Mutation{flowHash},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		res := claim.Result{Pass: true, Notes: []string{
			"every packet of flows of 20 to 60 KB is mirrored; passes when all packets have their mirrors at one analyzer, and the busiest of up to 16 has at most twice the mean: with few flows for each, some are busier by chance",
		}}
		sizes := []int{2, 4, 16, 64, 256}
		var all []*sharing
		for _, n := range sizes {
			s := newSharing(n, innermost)
			s.inTurn = o.Without(flowHash)
			all = append(all, s)
		}
		l, err := newLab(setup{
			seed: o.Seed, mirrors: func(_ model.NodeID, c *mirror.Config) { c.SampleOneIn = 1 },
			seen: func(_ model.Time, m *wire.Mirror) {
				for _, s := range all {
					s.addMirror(m)
				}
			},
		})
		if err != nil {
			return res, err
		}
		if err := l.addFlows(o.Pick(1000, 300)); err != nil {
			return res, err
		}
		if err := l.run(ctx, 10*ms); err != nil {
			return res, err
		}
		table := claim.Table{
			Title:  "mirrors shared among analyzers",
			Header: []string{"analyzers", "packets", "at one analyzer", "busiest, of the mean"},
		}
		chart := plot.Chart{
			Title: "load of the busiest analyzer, of the mean", XTitle: "analyzers", YTitle: "times",
			LogX: true, Series: []plot.Series{{Name: "mirrors"}},
		}
		for i, s := range all {
			n, of := s.packetsAtOneAnalyzer()
			table.Row(fmt.Sprint(sizes[i]), fmt.Sprint(of), percent(n, of), fmt.Sprintf("%.2f", s.busiest()))
			chart.Series[0].X, chart.Series[0].Y = append(chart.Series[0].X,
				float64(sizes[i])), append(chart.Series[0].Y, s.busiest())
			res.Pass = res.Pass && n == of && of > 0 && (sizes[i] > 16 || s.busiest() <= 2)
			if sizes[i] == 16 {
				res.Measured = fmt.Sprintf("%s at one analyzer; the busiest of 16 has %.2f times the mean",
					percent(n, of), s.busiest())
			}
		}
		res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}

// muxFabric is a fabric with a load balancer: clients, backends and the mux in
// separate racks below two spines.
func muxFabric() (f *topo.Fabric, vip model.Addr, clients, backends []model.NodeID, err error) {
	address := netip.MustParseAddr("10.200.0.1")
	b := topo.NewBuilder("racks")
	link := topo.DefaultLinks().Fabric
	spines := []model.NodeID{
		b.AddNode(topo.NodeSpec{Name: "spine0", Role: topo.Spine, Pod: topo.NoPod}),
		b.AddNode(topo.NodeSpec{Name: "spine1", Role: topo.Spine, Pod: topo.NoPod}),
	}
	for rack, of := range []*[]model.NodeID{&clients, &backends, nil} {
		tor := b.AddNode(topo.NodeSpec{Name: fmt.Sprintf("tor%d", rack), Role: topo.ToR, Pod: topo.NoPod})
		for _, s := range spines {
			b.Connect(tor, s, link)
		}
		if of == nil {
			mux := b.AddNode(topo.NodeSpec{
				Name: "mux", Role: topo.Mux, Pod: topo.NoPod,
				Nets: []netip.Prefix{netip.PrefixFrom(address, 32)},
			})
			b.Connect(mux, tor, link)
			continue
		}
		for i := range 4 {
			id := b.AddNode(topo.NodeSpec{Name: fmt.Sprintf("h%d%d", rack, i), Pod: topo.NoPod})
			b.Connect(id, tor, link)
			*of = append(*of, id)
		}
	}
	f, err = b.Build()
	return f, model.AddrOf(address), clients, backends, err
}

var inner = claim.Claim{
	ID: "everflow-inner-header", Where: "sections 3.2 and 4.1, figure 3",
	Says:      "a load balancer's tunnel breaks traces in two, unless switches match and the reshuffler hashes the inner header: then the whole path from the source to the backend is one trace",
	Published: "the complete path",
	Mutations: []claim.Mutation{innerHash},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		res := claim.Result{Notes: []string{
			"TCP connections of four clients to a virtual address, by one mux to four backends, all packets mirrored; complete means seen from the client's rack to the mux and in the tunnel to the backend's rack, by one analyzer",
			"passes when all packets to the virtual address are complete with the inner header, and fewer than half with the outer one",
		}}
		f, vip, clients, backends, err := muxFabric()
		if err != nil {
			return res, err
		}
		const analyzers = 16
		byInner, byOuter := newSharing(analyzers, innermost), newSharing(analyzers, outermost)
		if o.Without(innerHash) {
			byInner.byKey = outermost
		}
		var whole, of uint64
		l, err := newLab(setup{
			fabric: f, seed: o.Seed, mirrors: func(_ model.NodeID, c *mirror.Config) { c.SampleOneIn = 1 },
			seen: func(_ model.Time, m *wire.Mirror) { byInner.addMirror(m); byOuter.addMirror(m) },
			closed: func(t *trace.Trace) {
				if t.Key.Dst != vip {
					return
				}
				of++
				first, last := &t.Hops[0], &t.Hops[len(t.Hops)-1]
				if t.End == trace.Arrived && first.Depth == 1 && last.Depth == 2 && t.MirrorsLost == 0 {
					whole++
				}
			},
		})
		if err != nil {
			return res, err
		}
		service := sim.Service{VIP: vip, Delay: 20 * time.Microsecond}
		for _, id := range backends {
			service.Backends = append(service.Backends, f.Node(id).IPv4)
		}
		if err := l.AddService(service); err != nil {
			return res, err
		}
		var flows []traffic.Flow
		for i := range o.Pick(400, 100) {
			flows = append(flows, traffic.Flow{
				Src: clients[i%len(clients)], To: vip, Bytes: 20_000,
				Start: model.Time(i * 20_000), Transport: traffic.TCP, Rate: 2 * model.Gbps,
			})
		}
		if err := l.AddFlows(flows); err != nil {
			return res, err
		}
		if err := l.run(ctx, 15*ms); err != nil {
			return res, err
		}
		// Answers from the backends go straight to the client, without tunnel.
		split := func(s *sharing) (n, of uint64) {
			for id, at := range s.of {
				if id.key.Dst == vip {
					of++
					if len(at) == 1 {
						n++
					}
				}
			}
			return n, of
		}
		in, packets := split(byInner)
		out, _ := split(byOuter)
		table := claim.Table{
			Title: fmt.Sprintf("packets to the virtual address, %d analyzers", analyzers),
			Header: []string{
				"reshuffled by", "packets", "with all mirrors at one analyzer",
				"traced from source to backend",
			},
		}
		table.Row("inner header", fmt.Sprint(packets), percent(in, packets), percent(whole, of))
		table.Row("outer header", fmt.Sprint(packets), percent(out, packets), percent(out, packets))
		chart := plot.Chart{
			Title: "packets through a mux with all mirrors at one analyzer", YTitle: "%",
			Groups: []string{
				"inner header",
				"outer header",
			}, Series: []plot.Series{{
				Name: "packets",
				Y: []float64{
					100 * float64(in) / float64(max(packets, 1)),
					100 * float64(out) / float64(max(packets, 1)),
				},
			}},
		}
		res.Measured = fmt.Sprintf("inner header: %s complete; outer: %s", percent(whole, of), percent(out, packets))
		res.Pass = of > 0 && whole == of && in == packets && 2*out < packets
		res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}
