package sim

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// order is what a laboratory can remove.
var order = claim.Mutation{Name: "order", Removes: "steps do not wait for the chunks that they need"}

// Sizes of RoCEv2 packets on the wire.
const (
	payload = 1024
	wire    = 14 + 20 + 8 + 12 + payload + 4
	reth    = 16                       // of the first packet
	ack     = 14 + 20 + 8 + 12 + 4 + 4 // with AETH
	linkBps = 100e9                    // of hosts
	delay   = time.Microsecond         // of a link
	mostOff = 1e-6                     // of the ideal time
)

var collective = claim.Claim{
	ID: "sim-collective", Where: "docs/simulator.md",
	Says:      "a ring all-reduce below one switch takes its ideal time: 2(N-1) steps of a chunk's transmission and a round trip",
	Published: "theory; within a millionth",
	Mutations: []claim.Mutation{order},
	Run: func(_ context.Context, o claim.Options) (claim.Result, error) {
		r := claim.Result{Pass: true, Notes: []string{
			"links of 100 Gb/s and 1 µs, one acknowledgement for each chunk, no other traffic; a step begins when the chunk of the one before has arrived and the own one is acknowledged",
			"ideal: a chunk's bytes with headers on the first link, its longest packet on the second, two delays; the acknowledgement on both, two delays",
		}}
		t := claim.Table{Title: "ring all-reduce", Header: []string{"hosts", "packets of a chunk", "time", "ideal", "off by"}}
		chart := plot.Chart{Title: "Ring all-reduce", XTitle: "hosts", YTitle: "ms", LogX: true, Series: []plot.Series{{Name: "simulated"}, {Name: "ideal"}}}
		worst := 0.0
		for _, hosts := range []int{2, 4, 8, 16} {
			for _, packets := range []int{1, 10, 200} {
				took, err := ringTime(o, hosts, packets)
				if err != nil {
					return claim.Result{}, err
				}
				ideal := idealRing(hosts, packets)
				off := math.Abs(took/ideal - 1)
				worst = max(worst, off)
				t.Row(fmt.Sprint(hosts), fmt.Sprint(packets), fmt.Sprintf("%.4f µs", took*1e6), fmt.Sprintf("%.4f µs", ideal*1e6), fmt.Sprintf("%.1e", off))
				if packets == 200 {
					for k, y := range []float64{took * 1e3, ideal * 1e3} {
						chart.Series[k].X, chart.Series[k].Y = append(chart.Series[k].X, float64(hosts)), append(chart.Series[k].Y, y)
					}
				}
			}
		}
		r.Pass = worst <= mostOff
		r.Measured = fmt.Sprintf("off by at most %.1e", worst)
		r.Tables, r.Plots = []claim.Table{t}, []claim.Plot{{Chart: chart}}
		return r, nil
	},
}

// idealRing returns the seconds that a ring all-reduce takes at least.
func idealRing(hosts, packets int) float64 {
	on := func(bytes int) float64 { return float64(8*bytes) / linkBps }
	// The first packet is the longest: those after it wait for it on the second link.
	chunk := on(reth+packets*wire) + on(wire+reth) + 2*delay.Seconds()
	return float64(2*(hosts-1)) * (chunk + 2*on(ack) + 2*delay.Seconds())
}

// ringTime simulates an all-reduce and returns the seconds that it took.
func ringTime(o claim.Options, hosts, packets int) (float64, error) {
	f, err := topo.LeafSpine(1, 1, hosts, linksOf(model.Rate(linkBps), model.Rate(linkBps)))
	cfg := sim.DefaultConfig()
	cfg.Seed, cfg.AckPerBytes = o.Seed, math.MaxInt64
	n, err := newNetwork(f, err, cfg)
	if err != nil {
		return 0, err
	}
	ring := traffic.RingAllReduce{Job: traffic.DefaultJob()}
	ring.Bytes, ring.Compute, ring.Iterations, ring.Start = model.Bytes(hosts*packets*payload), 0, 1, 0
	flows, err := traffic.Generate(o.Seed, traffic.HostsOf(f), ring)
	if err != nil {
		return 0, err
	}
	if o.Without(order) {
		for i := range flows {
			flows[i].After = nil
		}
	}
	if err := n.AddFlows(flows); err != nil {
		return 0, err
	}
	n.Run(engine.Second)
	if n.Finished != len(flows) {
		return 0, fmt.Errorf("%d of %d transfers finished", n.Finished, len(flows))
	}
	end := engine.Time(0)
	for _, r := range n.Records() {
		end = max(end, r.Finish)
	}
	return float64(end) / float64(engine.Second), nil
}
