package flowradar

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/topo"
)

var loop = claim.Claim{
	ID: "flowradar-loop", Where: "section 6.1",
	Says:      "a loop between an edge and an aggregation switch of a k=4 fat-tree is found by the end of the slot it starts in",
	Published: "within 10 ms",
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		return runOutage(ctx, o, paths.Loop, 10*time.Millisecond)
	},
	Mutations: []claim.Mutation{faultySwitch},
}

var blackhole = claim.Claim{
	ID: "flowradar-blackhole", Where: "section 6.1",
	Says:      "a route that an edge switch of a k=4 fat-tree has lost is found in the slot after: before that, some packets of the slot arrived",
	Published: "within 20 ms",
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		return runOutage(ctx, o, paths.BlackHole, 20*time.Millisecond)
	},
	Mutations: []claim.Mutation{faultySwitch},
}

// runOutage injects a route fault at a random instant of a slot, many times, and
// measures how long it takes until the end of the slot whose flowsets prove it.
func runOutage(ctx context.Context, o claim.Options, kind paths.Kind, published time.Duration) (claim.Result, error) {
	plan, err := flowset.Plan(500, 0.999, flowset.Single)
	if err != nil {
		return claim.Result{}, err
	}
	trials := o.Pick(1000, 50)
	if o.Broken() {
		trials = 4
	}
	var mu sync.Mutex
	var delays, sinceChange, suspected []float64
	falsely := 0
	rate, err := claim.Trials(ctx, trials, o.Seed, func(rng *rand.Rand) (bool, error) {
		f, err := runFault(rng, plan.Geometry, kind, o.Without(faultySwitch))
		mu.Lock()
		defer mu.Unlock()
		delays = append(delays, millisecondsBetween(f.firstPacket, f.confirmed))
		sinceChange = append(sinceChange, millisecondsBetween(f.change, f.confirmed))
		suspected = append(suspected, millisecondsBetween(f.firstPacket, f.suspected))
		falsely += f.wrong
		return f.confirmed-f.firstPacket <= published, err
	}, func(done float64) { o.Report(done, "injecting faults") })
	if err != nil {
		return claim.Result{}, err
	}
	t := claim.Table{
		Title:  "until the end of the slot that showed it, ms",
		Header: []string{"", "least", "median", "p99", "most", "within " + published.String()},
	}
	for _, row := range []struct {
		name   string
		delays []float64
	}{
		{"confirmed, since the first packet that it affected", delays},
		{"confirmed, since the route changed", sinceChange},
		{"suspected, since the first packet that it affected", suspected},
	} {
		slices.Sort(row.delays)
		at := func(q float64) string {
			return fmt.Sprintf("%.1f", row.delays[int(q*float64(len(row.delays)-1))])
		}
		within := 0
		for _, d := range row.delays {
			if d <= published.Seconds()*1e3 {
				within++
			}
		}
		t.Row(row.name, at(0), at(0.5), at(0.99), at(1), claim.Rate{Hits: within, Of: trials}.String())
	}
	return claim.Result{
		Measured: fmt.Sprintf("%s confirmed within %v; at most %.1f ms; %d findings elsewhere", rate, published,
			delays[len(delays)-1], falsely),
		Pass: rate.Hits == rate.Of && falsely == 0,
		Notes: []string{
			"each of 16 hosts sends a packet every 5 ms to each other, slots of 10 ms, all 20 switches report; the route changes at a random instant of a slot, and the delay runs from the first packet that this affects: before it there is nothing to see",
			"export and decoding come on top: here 0.1 ms of the management network; clocks agree, and the detector assumes that they do within 1 µs",
			"passes when every fault is confirmed, not only suspected, within the published time, and nothing is found elsewhere, not even suspected; 3,600,000 ms: never",
		},
		Tables: []claim.Table{t},
		Plots: []claim.Plot{{Chart: plot.Chart{
			Title:  "How soon a " + kind.String() + " is confirmed",
			XTitle: "ms since its first packet", YTitle: "share of faults",
			Series: []plot.Series{
				{Name: "measured", Values: delays},
				{
					Name: "published", X: []float64{published.Seconds() * 1e3, published.Seconds() * 1e3},
					Y: []float64{0, 1}, Dashed: true,
				},
			},
		}}},
	}, nil
}

func millisecondsBetween(from, to time.Duration) float64 { return (to - from).Seconds() * 1e3 }

// outage is when a fault happened and was found, and the findings that were about
// something else.
type outage struct {
	change, firstPacket  time.Duration // the route changed; a packet was affected
	suspected, confirmed time.Duration // an hour: never
	wrong                int
}

// firstAffected observes the first packet to the victim that a faulty switch drops
// or sends to another switch.
type firstAffected struct {
	sim.NopObserver
	at     model.NodeID
	victim model.Addr
	since  time.Duration
	first  time.Duration
}

// Enqueued implements sim.Observer.
func (o *firstAffected) Enqueued(now engine.Time, p *sim.Packet, out *sim.Port) {
	if out.Peer().Switch() != nil {
		o.affected(now, p, out)
	}
}

// Dropped implements sim.Observer.
func (o *firstAffected) Dropped(now engine.Time, p *sim.Packet, at *sim.Port, _ sim.Reason) {
	o.affected(now, p, at)
}

func (o *firstAffected) affected(now engine.Time, p *sim.Packet, at *sim.Port) {
	if t := time.Duration(now.Model()); o.first == 0 && t >= o.since && p.Key.Dst == o.victim && at.Node == o.at {
		o.first = t
	}
}

// runFault injects one fault, with the flowsets of the faulty switch or without.
func runFault(rng *rand.Rand, g sketch.Geometry, kind paths.Kind, silent bool) (out outage, err error) {
	l, fabric, err := newFaultLab(rng, g, incomingOnly)
	if err != nil {
		return out, err
	}
	net := l.net
	const end = 60 * time.Millisecond
	if err := net.AddFlows(everyPair(fabric, rng, end)); err != nil {
		return out, err
	}
	out.change = 10*time.Millisecond + time.Duration(rng.Int64N(int64(slotLength)))
	victim := fabric.Node(fabric.Hosts()[rng.IntN(len(fabric.Hosts()))])
	tor := victim.Ports[0].Peer.Node
	entry := sim.Entry{Switch: tor, To: netip.PrefixFrom(victim.IPv4.Netip(), 32)}
	if kind == paths.Loop {
		// The edge switch has a route as if the host had moved and sends its
		// packets up; the switch above still sends them down.
		entry.Via = []model.NodeID{uplinkSwitch(fabric, tor, rng)}
	} else {
		// A ToR of another pod loses its route to the host.
		for fabric.Node(entry.Switch).Pod == victim.Pod {
			other := fabric.Node(fabric.Hosts()[rng.IntN(len(fabric.Hosts()))])
			entry.Switch = other.Ports[0].Peer.Node
		}
	}
	first := &firstAffected{at: entry.Switch, victim: victim.IPv4, since: out.change}
	net.Observe(first)
	if err := net.Inject(sim.Injection{
		At:    model.Time(out.change),
		Fault: sim.Reroute{Entries: []sim.Entry{entry}},
	}); err != nil {
		return out, err
	}
	net.Run(engine.Of(end))
	if first.first == 0 {
		return out, fmt.Errorf("%v at node %d affected no packet within %v", kind, entry.Switch, end-out.change)
	}
	out.firstPacket = first.first
	if silent {
		l.silent = func(sw model.NodeID) bool { return sw == entry.Switch }
	}
	maps, err := l.maps(l.incoming)
	if err != nil {
		return out, err
	}
	return out, l.detectFault(maps, kind, entry, &out)
}

// detectFault feeds the maps to a detector and notes when it suspected the fault
// and when it confirmed it.
func (l *lab) detectFault(maps []*paths.Map, kind paths.Kind, entry sim.Entry, out *outage) error {
	cfg := paths.DefaultConfig(l.net.Intent())
	cfg.ClockError = time.Microsecond
	detector, err := paths.NewDetector(cfg)
	if err != nil {
		return err
	}
	out.suspected, out.confirmed = time.Hour, time.Hour
	for _, m := range maps {
		for _, f := range detector.Observe(m) {
			switch {
			case f.Kind == kind && (f.At.Node == entry.Switch || slices.Contains(f.Switches, entry.Switch)):
				out.suspected = min(out.suspected, m.End().Sub(0))
				if f.Confirmed {
					out.confirmed = min(out.confirmed, m.End().Sub(0))
				}
			case f.Kind != paths.WrongRoute: // a loop is a wrong route, too
				out.wrong++
			}
		}
	}
	return nil
}

// everyPair is a packet every 5 ms from each host to each other, each pair at its
// own offset.
func everyPair(f *topo.Fabric, rng *rand.Rand, end time.Duration) (list []traffic.Flow) {
	const headers = 14 + 20 + 8
	for _, src := range f.Hosts() {
		for _, dst := range f.Hosts() {
			if src != dst {
				start := model.Time(rng.Int64N(int64(5 * time.Millisecond)))
				list = append(list, traffic.Flow{
					Src: src, Dst: dst, Start: start, Stop: model.Time(end), Transport: traffic.UDP,
					Rate: model.Rate((1024 + headers) * 8 * 200), Priority: 0,
				})
			}
		}
	}
	return list
}

// uplinkSwitch returns one of the switches that a ToR has its uplinks to.
func uplinkSwitch(f *topo.Fabric, tor model.NodeID, rng *rand.Rand) model.NodeID {
	var ups []model.NodeID
	for _, p := range f.Node(tor).Ports {
		if f.Node(p.Peer.Node).Role != topo.Host {
			ups = append(ups, p.Peer.Node)
		}
	}
	return ups[rng.IntN(len(ups))]
}
