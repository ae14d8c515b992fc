package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/fairshare"
)

// control is what a laboratory can remove.
var control = claim.Mutation{Name: "congestion-control", Removes: "senders have no congestion control: only PFC holds them back"}

// mostUnfair bounds the sum of the differences of rates, as a share of the sum of rates, as
// a mean of all cases: 8 cases of one seed had 8 % (3.6 to 12.7), and without congestion
// control 41 % (23 to 49).
const mostUnfair = 0.15

var shares = claim.Claim{
	ID: "sim-shares", Where: "docs/simulator.md",
	Says:      "flows under DCQCN get max-min fair shares of the links to hosts, computed by progressive filling",
	Published: "theory; rates differ by at most 15 % in sum, as a mean of all cases",
	Mutations: []claim.Mutation{control},
	Run: func(_ context.Context, o claim.Options) (claim.Result, error) {
		r := claim.Result{Pass: true, Notes: []string{
			"leaf-spine of 16 hosts at 10 Gb/s with links of 100 Gb/s between switches: only links of hosts are limits; rates over the time after 50 ms, payload only",
		}}
		t := claim.Table{Title: "shares", Header: []string{"case", "flows", "differences", "largest share", "smallest share"}}
		chart := plot.Chart{Title: "Rates and max-min shares", XTitle: "max-min share, Gb/s", YTitle: "rate, Gb/s", Series: []plot.Series{{Name: "flows"}}}
		mean := 0.0
		cases := o.Pick(10, 3)
		for i := range cases {
			o.Report(float64(i)/float64(cases), fmt.Sprintf("case %d", i))
			rates, fair, err := sharesOf(o, claim.Rand(o.Seed, uint64(i)), time.Duration(o.Pick(200, 100))*time.Millisecond)
			if err != nil {
				return claim.Result{}, err
			}
			var differ, sum, least, most float64
			least = math.Inf(1)
			for k := range rates {
				differ += math.Abs(rates[k] - fair[k])
				sum += fair[k]
				least, most = min(least, rates[k]/fair[k]), max(most, rates[k]/fair[k])
				chart.Series[0].X, chart.Series[0].Y = append(chart.Series[0].X, fair[k]/1e9), append(chart.Series[0].Y, rates[k]/1e9)
			}
			mean += differ / sum / float64(cases)
			t.Row(fmt.Sprint(i), fmt.Sprint(len(rates)), fmt.Sprintf("%.1f %%", 100*differ/sum), fmt.Sprintf("%.2f of fair", most), fmt.Sprintf("%.2f of fair", least))
		}
		r.Pass = mean <= mostUnfair
		r.Measured = fmt.Sprintf("rates differ by %.1f %% in sum, a mean of %d cases", 100*mean, cases)
		r.Tables, r.Plots = []claim.Table{t}, []claim.Plot{{Chart: chart}}
		return r, nil
	},
}

// sharesOf runs flows between random hosts, some of which send or receive several, and
// returns their rates of payload and the max-min fair ones.
func sharesOf(o claim.Options, rng *rand.Rand, span time.Duration) (rates, fair []float64, err error) {
	const hostRate = 10 * model.Gbps
	f, err := topo.LeafSpine(2, 2, 8, linksOf(hostRate, 10*hostRate))
	cfg := sim.DefaultConfig()
	cfg.Seed = rng.Uint64() >> 1
	if o.Without(control) {
		cfg.Congestion = nil
	}
	n, err := newNetwork(f, err, cfg)
	if err != nil {
		return nil, nil, err
	}
	var flows []traffic.Flow
	var links [][]int
	capacity := make([]float64, 32) // of hosts: sending, then receiving
	for i := range capacity {
		capacity[i] = float64(hostRate) * payload / wire
	}
	for i := range 14 {
		src := rng.IntN(8)
		dst := 8 + min(rng.IntN(8), rng.IntN(8)) // some receive more than others
		flows = append(flows, traffic.Flow{Src: model.NodeID(src), Dst: model.NodeID(dst), Stop: model.Time(10 * time.Second), Priority: 3, Start: model.Time(i) * 1000})
		links = append(links, []int{src, 16 + dst})
	}
	if err := n.AddFlows(flows); err != nil {
		return nil, nil, err
	}
	const warm = 50 * time.Millisecond
	n.Run(engine.Of(warm))
	before := n.Records()
	n.Run(engine.Of(warm + span))
	after := n.Records()
	for i := range flows {
		rates = append(rates, float64(8*(after[i].Sent-before[i].Sent))/span.Seconds())
	}
	return rates, fairshare.Rates(capacity, links, float64(hostRate)), nil
}
