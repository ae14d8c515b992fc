package intlabel

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

// linearOfFive is f(i) = i/5, which figures 15 and 16 use: MAX_hop, as in the code,
// not MAX_hop - 1 as in the text.
func linearOfFive(i int) float64 { return min(float64(i)/5, 1) }

var linearB = strategy{name: "Base B", odds: label.ProbabilityF2(5)}

// expectedLabels returns the mean number of labels on a packet by theory.
func expectedLabels(s strategy, k int, r float64) float64 {
	if s.name == baseA.name {
		return coverage.Mean(coverage.BaseA(k, r))
	}
	return coverage.Mean(coverage.BaseB(k, r, linearOfFive))
}

// compareTheory compares theory with the simulator in fat-trees of all sizes and rates.
func compareTheory(ctx context.Context, o claim.Options, ks []int, rs []float64) (t claim.Table, worst float64,
	err error,
) {
	t = claim.Table{
		Title:  "labels per packet, theory and simulation",
		Header: []string{"strategy", "k", "Ts/T", "packets", "theory", "simulated", "difference"},
	}
	total, done := 2*len(ks)*len(rs), 0
	for _, s := range []strategy{baseA, linearB} {
		for _, k := range ks {
			for _, r := range rs {
				l := newLab(s, o.Seed)
				// Every host sends at one rate to all others, so ports of all tiers
				// see about as many packets: Ts is a host's own gap.
				l.pods, l.senders, l.scatter, l.rate = k, []int{}, true, 1000
				l.interval = time.Duration(float64(time.Second) / l.rate / r)
				l.packets = k * k * k / 4 * int(float64(o.Pick(40, 12))/r)
				o.Report(float64(done)/float64(total), fmt.Sprintf("%s, k = %d, Ts/T = %.3g", s.name, k, r))
				out, err := removed(o, []lab{l})[0].run(ctx)
				if err != nil {
					return t, 0, err
				}
				done++
				theory, got := expectedLabels(s, k, r), float64(out.labels)/float64(out.sent)
				off := got/theory - 1
				worst = max(worst, math.Abs(off))
				t.Row(s.name, fmt.Sprint(k), fmt.Sprintf("%.3g", r), fmt.Sprint(out.sent),
					fmt.Sprintf("%.4f", theory), fmt.Sprintf("%.4f", got), fmt.Sprintf("%+.1f %%", 100*off))
			}
		}
	}
	return t, worst, nil
}

// The largest difference of simulation from theory. The closed form assumes that
// switches are independent and that probabilistic labels delay those by interval
// no more than g says; real ports do neither exactly.
const tolerance = 0.25

const theoryNote = "f(i) = i/5, with MAX_hop as in the paper's code and figure 15; theory is the closed form of section 4.3; simulation is a fat-tree in which every host sends to random others and packets take all paths (a port's very first packet always gets a label, which adds one to the 40 intervals of a run, or to the 12 of a quick one); passes when theory is as published and simulation is within 25 % of it"

// checkCurves checks a family of expectations: rising, and Base B above Base A.
func checkCurves(xs []float64, y func(s strategy, x float64) float64) (series []plot.Series, ok bool) {
	ok = true
	for _, s := range []strategy{baseA, linearB} {
		l := plot.Series{Name: s.name, X: xs}
		for i, x := range xs {
			l.Y = append(l.Y, y(s, x))
			ok = ok && (i == 0 || l.Y[i] > l.Y[i-1])
		}
		series = append(series, l)
	}
	for i := range xs {
		ok = ok && series[1].Y[i] > series[0].Y[i]
	}
	return series, ok
}

var topology = claim.Claim{
	ID: "int-label-times-topology", Where: "section 6.2, figure 15",
	Says:      "the expected number of labels on a packet grows with the size k of the fat-tree, and is higher with Base B, at Ts/T = 1/100",
	Published: "both grow with k, Base B above Base A",
	Mutations: []claim.Mutation{labelInterval},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		var xs []float64
		for k := 4.0; k <= 40; k += 4 {
			xs = append(xs, k)
		}
		series, ok := checkCurves(xs, func(s strategy, k float64) float64 { return expectedLabels(s, int(k), 0.01) })
		sizes := []int{4, 6}
		if o.Quick {
			sizes = sizes[:1]
		}
		t, worst, err := compareTheory(ctx, o, sizes, []float64{0.01})
		if err != nil {
			return claim.Result{}, err
		}
		last := len(xs) - 1
		return claim.Result{
			Measured: fmt.Sprintf("Base A %.4f to %.4f, Base B %.4f to %.4f from k = 4 to 40; simulation within %.0f %%", series[0].Y[0], series[0].Y[last], series[1].Y[0], series[1].Y[last], 100*worst),
			Pass:     ok && worst <= tolerance, Notes: []string{theoryNote},
			Tables: []claim.Table{t},
			Plots: []claim.Plot{{Chart: plot.Chart{
				Title: "expected labels, Ts/T = 1/100", XTitle: "k",
				YTitle: "labels per packet", Series: series,
			}}},
		}, nil
	},
}

var arrivals = claim.Claim{
	ID: "int-label-times-arrivals", Where: "section 6.2, figure 16",
	Says:      "the expected number of labels on a packet grows with Ts/T, and is higher with Base B, at k = 20",
	Published: "both grow with Ts/T, Base B above Base A",
	Mutations: []claim.Mutation{labelInterval},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		xs := []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1}
		series, ok := checkCurves(xs, func(s strategy, r float64) float64 { return expectedLabels(s, 20, r) })
		rates := []float64{0.01, 0.02, 0.05, 0.1}
		if o.Broken() {
			rates = rates[3:]
		}
		t, worst, err := compareTheory(ctx, o, []int{4}, rates)
		if err != nil {
			return claim.Result{}, err
		}
		last := len(xs) - 1
		return claim.Result{
			Measured: fmt.Sprintf("Base A %.4f to %.4f, Base B %.4f to %.4f from Ts/T = 0.001 to 0.1; simulation (k = 4) within %.0f %%", series[0].Y[0], series[0].Y[last], series[1].Y[0], series[1].Y[last], 100*worst),
			Pass:     ok && worst <= tolerance, Notes: []string{theoryNote},
			Tables: []claim.Table{t},
			Plots: []claim.Plot{{Chart: plot.Chart{
				Title: "expected labels, k = 20", XTitle: "Ts/T",
				YTitle: "labels per packet", LogX: true, Series: series,
			}}},
		}, nil
	},
}
