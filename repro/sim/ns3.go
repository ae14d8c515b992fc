package sim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/ns3"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// Mechanisms that a laboratory can remove.
var (
	sharing = claim.Mutation{Name: "sharing", Removes: "in Weft, flows do not meet: they start a millisecond apart"}
	paths   = claim.Mutation{Name: "paths", Removes: "ns-3 chooses ports up by a hash of its own"}
)

// Both simulators have the same packets on the wire: Ethernet and IP take 12 bytes more in
// Weft than PPP and IP in ns-3, and a payload makes up for them.
const (
	peerWire    = 1042
	weftPayload = peerWire - 14 - 20 - 8
	ns3Payload  = peerWire - 2 - 20 - 8
	peerRate    = 100 * model.Gbps // of links, and of flows on the wire
	peerDelay   = time.Microsecond
	peerLong    = 50 // packets of a long flow; the others have one
	peerLoad    = 0.6
	meetApart   = time.Millisecond

	longFlowShare = 0.4
	asLate        = time.Nanosecond
	leastAsLate   = 0.95
	mostApart     = 0.01
)

var peer = claim.Claim{
	ID: "sim-ns3", Where: "docs/simulator.md",
	Says: "flows that wait for each other in the queues of a fat-tree arrive when they do in ns-3",
	Published: fmt.Sprintf("ns-3 3.37 in the same run: at least %.0f %% of flows within %v, and the distributions of their lateness at most %v apart (Kolmogorov-Smirnov)",
		100*leastAsLate, asLate, mostApart),
	Mutations: []claim.Mutation{sharing, paths},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		r := claim.Result{Pass: true, Notes: []string{
			fmt.Sprintf("fat-tree k=4 with links of 100 Gb/s and 1 µs, UDP packets of %d bytes on the wire, %.0f %% of the flows with %d of them in a row, the others with one, to random hosts, which send one flow after the other at a load of %.0f %%; queues lose nothing; ns-3 sends each flow over the switches that Weft's ECMP chose",
				peerWire, 100*longFlowShare, peerLong, 100*peerLoad),
			"lateness: how much later than alone a flow's last packet arrives, which is what it and the packets before it waited in queues",
			"packets that arrive at a switch at the same picosecond may leave in either order, and those behind them follow",
		}}
		t := claim.Table{Title: "lateness", Header: []string{"list", "flows", "packets", "late", "mean in ns-3, µs", "in Weft, µs", "largest in ns-3, µs", "in Weft, µs", "the same", "distance"}}
		same, flows, farthest := 0, 0, 0.0
		lists := o.Pick(20, 6)
		for i := range lists {
			o.Report(float64(i)/float64(lists), fmt.Sprintf("list %d of %d", i+1, lists))
			list := drawPeerFlows(o, i)
			ours, up, err := list.lateInWeft(o)
			if err != nil {
				return claim.Result{}, err
			}
			theirs, err := list.lateInNS3(ctx, o, up)
			if err != nil {
				return claim.Result{}, err
			}
			for _, long := range []bool{false, true} {
				c := list.compare(theirs, ours, long)
				same, flows, farthest = same+c.same, flows+len(c.theirs), max(farthest, c.distance())
				t.Row(fmt.Sprint(i+1), fmt.Sprint(len(c.theirs)), fmt.Sprint(c.packets), fmt.Sprintf("%.0f %%", 100*c.lateShare()),
					fmt.Sprintf("%.3f", mean(c.theirs)), fmt.Sprintf("%.3f", mean(c.ours)), fmt.Sprintf("%.3f", slices.Max(c.theirs)), fmt.Sprintf("%.3f", slices.Max(c.ours)),
					fmt.Sprintf("%.2f %%", 100*float64(c.same)/float64(len(c.theirs))), fmt.Sprintf("%.4f", c.distance()))
				if i == 0 && long {
					r.Plots = []claim.Plot{{Chart: c.chart()}}
				}
			}
		}
		share := float64(same) / float64(flows)
		r.Pass = share >= leastAsLate && farthest <= mostApart
		r.Measured = fmt.Sprintf("%.2f %% of %d flows within %v, distributions at most %.4f apart", 100*share, flows, asLate, farthest)
		r.Tables = []claim.Table{t}
		return r, nil
	},
}

// peerFlows are flows for both simulators.
type peerFlows []peerFlow

type peerFlow struct {
	src, dst int // hosts
	packets  int
	start    time.Duration
}

// peerHosts is how many hosts the fat-tree has.
const peerHosts = 16

// onWire is how long a packet takes on a link, in seconds.
const onWire = peerWire * 8 / float64(peerRate)

// drawPeerFlows draws a list of flows. A host pauses for a random time after each, so that
// its flows do not meet: hosts of ns-3 send all packets in their order, those of Weft take
// turns between flows.
func drawPeerFlows(o claim.Options, list int) (flows peerFlows) {
	rng := claim.Rand(o.Seed, uint64(list))
	busy := (longFlowShare*peerLong + 1 - longFlowShare) * onWire
	for src := range peerHosts {
		at := 0.0
		for range o.Pick(200, 100) {
			at += rng.ExpFloat64() * busy * (1 - peerLoad) / peerLoad
			f := peerFlow{src: src, packets: 1, start: time.Duration(math.Ceil(at * 1e9))}
			f.dst = (f.src + 1 + rng.IntN(peerHosts-1)) % peerHosts
			if rng.Float64() < longFlowShare {
				f.packets = peerLong
			}
			at += float64(f.packets) * onWire
			flows = append(flows, f)
		}
	}
	slices.SortStableFunc(flows, func(a, b peerFlow) int { return cmp.Compare(a.start, b.start) })
	return flows
}

// alone is how long a flow takes alone, in ps: the last packet leaves at its pace, and is
// stored and forwarded on every link.
func (f *peerFlow) alone() int64 {
	links := int64(6)
	if f.src/2 == f.dst/2 {
		links = 2
	} else if f.src/4 == f.dst/4 {
		links = 4
	}
	on := engine.Transmit(peerWire, peerRate)
	return links*int64(on+engine.Of(peerDelay)) + int64(f.packets-1)*int64(on)
}

// late returns by how many µs each flow's last packet arrived later than alone.
func (l peerFlows) late(arrived []int64) ([]float64, error) {
	out := make([]float64, len(l))
	for i := range l {
		if arrived[i] < 0 {
			return nil, fmt.Errorf("flow %d of %d has not arrived", i, len(l))
		}
		out[i] = float64(arrived[i]-int64(engine.Of(l[i].start))-l[i].alone()) / float64(engine.Microsecond)
	}
	return out, nil
}

// end is when all flows have ended, with room for queues.
func (l peerFlows) end() time.Duration { return l[len(l)-1].start + 2*time.Millisecond }

// lateInNS3 simulates the flows in ns-3, by given ports up.
func (l peerFlows) lateInNS3(ctx context.Context, o claim.Options, up [][2]int) ([]float64, error) {
	c := ns3.Config{K: 4, Rate: peerRate, Delay: peerDelay, Payload: ns3Payload, Stop: l.end(), Arrivals: true, Routed: !o.Without(paths)}
	for i, f := range l {
		c.Flows = append(c.Flows, ns3.Flow{
			Src: f.src, Dst: f.dst, Bytes: model.Bytes(f.packets * ns3Payload), Start: f.start, Rate: peerRate * ns3Payload / peerWire, Up: up[i],
		})
	}
	r, err := ns3.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	return l.late(r.Arrived)
}

// lateInWeft simulates the flows in Weft, and returns the ports up that they took.
func (l peerFlows) lateInWeft(o claim.Options) (late []float64, up [][2]int, err error) {
	f, err := topo.FatTree(4, linksOf(peerRate, peerRate))
	cfg := sim.DefaultConfig()
	cfg.Seed, cfg.MTU = o.Seed, weftPayload
	cfg.Buffer, cfg.Lossless, cfg.AlphaShift, cfg.LossyQueue = 512*model.MB, 0, 0, 0
	n, err := newNetwork(f, err, cfg)
	if err != nil {
		return nil, nil, err
	}
	run := slices.Clone(l)
	for i := range run {
		if o.Without(sharing) {
			run[i].start = time.Duration(i) * meetApart
		}
	}
	hosts := f.Hosts()
	flows := make([]traffic.Flow, len(run))
	for i, p := range run {
		flows[i] = traffic.Flow{
			Src: hosts[p.src], Dst: hosts[p.dst], Bytes: model.Bytes(p.packets * weftPayload), Transport: traffic.UDP,
			Rate: peerRate, Start: model.Time(p.start),
		}
	}
	if err := n.AddFlows(flows); err != nil {
		return nil, nil, err
	}
	a := &arrivals{last: make([]int64, len(flows)), missing: make([]int, len(flows))}
	for i := range run {
		a.last[i], a.missing[i] = -1, run[i].packets
		ports, err := portsUp(n, i, hosts[run[i].src])
		if err != nil {
			return nil, nil, err
		}
		up = append(up, ports)
	}
	n.Observe(a)
	n.Run(engine.Of(run.end()))
	late, err = run.late(a.last)
	return late, up, err
}

// portsUp returns by which port up, from 0, a flow leaves its ToR and its leaf.
func portsUp(n *sim.Network, flow int, src model.NodeID) (up [2]int, err error) {
	key, _ := n.FlowKey(flow)
	hops, err := n.Routes().Path(key, src)
	if err != nil {
		return up, err
	}
	// A switch has as many ports up as down, and those down come first.
	for i, tier := range []topo.Role{topo.ToR, topo.Leaf} {
		for _, h := range hops {
			if node := n.Fabric().Node(h.Node); node.Role == tier && int(h.Out) > len(node.Ports)/2 {
				up[i] = int(h.Out) - 1 - len(node.Ports)/2
			}
		}
	}
	return up, nil
}

// arrivals notes when the last packet of each flow arrives.
type arrivals struct {
	sim.NopObserver
	last    []int64
	missing []int
}

// Delivered is part of sim.Observer.
func (a *arrivals) Delivered(now engine.Time, p *sim.Packet, _ *sim.Host) {
	id, _ := p.Flow()
	if a.missing[id]--; a.missing[id] == 0 {
		a.last[id] = int64(now)
	}
}

// lateness is that of the same flows in both simulators, in µs, sorted.
type lateness struct {
	packets      int // of each flow
	theirs, ours []float64
	same         int // flows whose lateness differs by asLate at most
}

// compare compares the flows with one packet, or the long ones.
func (l peerFlows) compare(theirs, ours []float64, long bool) (c lateness) {
	c.packets = 1
	if long {
		c.packets = peerLong
	}
	for i := range l {
		if l[i].packets != c.packets {
			continue
		}
		c.theirs, c.ours = append(c.theirs, theirs[i]), append(c.ours, ours[i])
		if math.Abs(theirs[i]-ours[i])*1e3 <= float64(asLate) {
			c.same++
		}
	}
	slices.Sort(c.theirs)
	slices.Sort(c.ours)
	return c
}

// lateShare is the share of flows that waited at all.
func (c *lateness) lateShare() float64 {
	return 1 - float64(sortedUpTo(c.ours, 0))/float64(len(c.ours))
}

// distance is the largest difference between the two distributions, as Kolmogorov and
// Smirnov have it. Values that differ by less than asLate are the same.
func (c *lateness) distance() (most float64) {
	const tie = float64(asLate) / 1e3
	for i, j := 0, 0; i < len(c.theirs) && j < len(c.ours); {
		v := min(c.theirs[i], c.ours[j]) + tie
		i, j = sortedUpTo(c.theirs, v), sortedUpTo(c.ours, v)
		most = max(most, math.Abs(float64(i)/float64(len(c.theirs))-float64(j)/float64(len(c.ours))))
	}
	return most
}

func (c *lateness) chart() plot.Chart {
	out := plot.Chart{
		Title: fmt.Sprintf("Flows of %d packets", c.packets), XTitle: "later than alone, µs", YTitle: "share of flows",
		Series: []plot.Series{{Name: "ns-3"}, {Name: "Weft"}},
	}
	for i, run := range [][]float64{c.theirs, c.ours} {
		for k := 0; k <= 50; k++ {
			out.Series[i].X = append(out.Series[i].X, run[k*(len(run)-1)/50])
			out.Series[i].Y = append(out.Series[i].Y, float64(k)/50)
		}
	}
	return out
}

func mean(list []float64) (m float64) {
	for _, v := range list {
		m += v / float64(len(list))
	}
	return m
}
