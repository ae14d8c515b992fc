package flowradar

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sketch"
)

var shortHole = claim.Claim{
	ID: "flowradar-short-blackhole", Where: "section 6.1",
	Says:      "a black hole shorter than a slot is found by the counters before and behind it, and how long it lasted is bounded",
	Published: "found, without a figure",
	Run:       runShortHole,
	Mutations: []claim.Mutation{faultySwitch, outgoingCounters},
}

// brief is a black hole of 1 to 8 ms, and what was found of it.
type brief struct {
	lasted      time.Duration
	found       bool // at its switch and destination
	bounded     bool // and its time is within the bounds
	least, most time.Duration
	wrong       int // holes found elsewhere
}

func runShortHole(ctx context.Context, o claim.Options) (claim.Result, error) {
	plan, err := flowset.Plan(500, 0.999, flowset.Single)
	if err != nil {
		return claim.Result{}, err
	}
	trials := o.Pick(1000, 20)
	if o.Broken() {
		trials = 4
	}
	var mu sync.Mutex
	var widths []float64
	wrong, found := 0, 0
	rate, err := claim.Trials(ctx, trials, o.Seed, func(rng *rand.Rand) (bool, error) {
		b, err := runBrief(rng, plan.Geometry, o)
		mu.Lock()
		defer mu.Unlock()
		wrong += b.wrong
		if b.found {
			found++
			widths = append(widths, millisecondsBetween(b.least, b.most))
		}
		return b.bounded, err
	}, func(done float64) { o.Report(done, "injecting black holes") })
	if err != nil {
		return claim.Result{}, err
	}
	slices.Sort(widths)
	median := "none"
	if len(widths) > 0 {
		median = fmt.Sprintf("%.2f ms apart", widths[len(widths)/2])
	}
	return claim.Result{
		Measured: fmt.Sprintf("%s found, with the time within the bounds in %s; bounds %s in the median; %d holes found elsewhere",
			claim.Rate{Hits: found, Of: trials}, rate, median, wrong),
		Pass: rate.Share() >= 0.99 && wrong == 0,
		Notes: []string{
			"a ToR of a k=4 fat-tree has no route to a host of another pod for 1 to 8 ms from a random instant on; each of 16 hosts sends a packet every 250 µs to each other; slots of 10 ms",
			"switches count incoming and outgoing packets; a black hole is what drops packets of two flows or more to one destination for one interruption, while other packets leave by the same port",
			"passes when 99 % or more are found at their switch and destination with bounds that hold, and none elsewhere",
		},
	}, nil
}

// runBrief injects one black hole.
func runBrief(rng *rand.Rand, g sketch.Geometry, o claim.Options) (b brief, err error) {
	l, fabric, err := newFaultLab(rng, g, bothSides)
	if err != nil {
		return b, err
	}
	net := l.net
	const end = 45 * time.Millisecond
	list := everyPair(fabric, rng, end)
	for i := range list {
		list[i].Rate *= 20
		list[i].Start %= model.Time(250 * time.Microsecond)
	}
	if err := net.AddFlows(list); err != nil {
		return b, err
	}
	hosts := fabric.Hosts()
	victim := fabric.Node(hosts[rng.IntN(len(hosts))])
	at := victim.Ports[0].Peer.Node
	for fabric.Node(at).Pod == victim.Pod {
		at = fabric.Node(hosts[rng.IntN(len(hosts))]).Ports[0].Peer.Node
	}
	b.lasted = time.Millisecond + time.Duration(rng.Int64N(int64(7*time.Millisecond)))
	if err := net.Inject(sim.Injection{
		At:    model.Time(10*time.Millisecond + time.Duration(rng.Int64N(int64(slotLength)))),
		For:   b.lasted,
		Fault: sim.Reroute{Entries: []sim.Entry{{Switch: at, To: netip.PrefixFrom(victim.IPv4.Netip(), 32)}}},
	}); err != nil {
		return b, err
	}
	net.Run(engine.Of(end))
	if o.Without(faultySwitch) {
		l.silent = func(sw model.NodeID) bool { return sw == at }
	}
	for _, f := range []*feed{l.incoming, l.outgoing} {
		if err := l.decode(f); err != nil {
			return b, err
		}
	}
	if o.Without(outgoingCounters) {
		l.outgoing.contents = nil
	}
	for _, h := range l.holes() {
		if h.Switch != at || h.Dst != victim.IPv4 {
			b.wrong++
			continue
		}
		b.found, b.least, b.most = true, h.Least, h.Most
		b.bounded = h.Least < b.lasted && b.lasted < h.Most
	}
	return b, nil
}

// holes finds the black holes at each switch. The feeds must be decoded.
func (l *lab) holes() (found []loss.Hole) {
	drops := map[switchSlot][]loss.Drop{}
	list, _ := l.drops()
	for _, d := range list {
		at := switchSlot{d.Switch, d.Slot}
		drops[at] = append(drops[at], d)
	}
	sorted := make([]*flows.Decoded, len(l.incoming.contents))
	for i := range sorted {
		sorted[i] = &l.incoming.contents[i]
	}
	slices.SortFunc(sorted, func(a, b *flows.Decoded) int { return int(a.Slot) - int(b.Slot) })
	finders := map[model.NodeID]*loss.Holes{}
	for _, in := range sorted {
		f := finders[in.Switch]
		if f == nil {
			f = &loss.Holes{}
			finders[in.Switch] = f
		}
		found = append(found, f.Observe(in, drops[switchSlot{in.Switch, in.Slot}])...)
	}
	return found
}
