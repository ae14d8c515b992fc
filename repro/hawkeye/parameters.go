package hawkeye

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

// setting is what most claims run on.
const setting = "fat-tree k=4, 100 Gb/s, 2 µs; RoCEv2 long tail at 10 to 60 % of random load between random hosts; " +
	"anomalies at random locations and times"

// scoring is how verdicts are scored.
const scoring = "a trace counts as found when a verdict names what was injected (anomaly, port, and most flows of " +
	"the burst " +
	"with a main part in the queue, or the host; a deadlock cycle with two triggers in the closure is found by " +
	"either; what no flow " +
	"waited for need not be named), and as right when every verdict on any detection in it has a cause in the " +
	"simulator's " +
	"wait-for relation (anomaly, root cause, port, cycle, and four fifths of the culprits' weight); " +
	"precision is the share of right traces, recall that of found ones"

// best returns the lab with the parameters that suit every row best.
func best() lab { return newLab().withVariant(3, 500*us) }

var parameters = claim.Claim{
	ID: "hawkeye-parameters", Where: "section 4.2, figure 7",
	Says:      "every anomaly is diagnosed with the right parameters, and nearly every one with any",
	Published: "precision and recall 1.00 at best, above 0.90 on average",
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		s := study{lab: newLab(), sets: single(rows), traces: o.Pick(100, 2), methods: []method{hawkeyeMethod}}
		all, err := s.run(ctx, o)
		if err != nil {
			return claim.Result{}, err
		}
		variants := len(s.lab.thresholds) * len(s.lab.lengths)
		var sums [2]float64
		bestAt, bestWorst := 0, -1.0
		for v := range variants {
			worst := 1.0
			for set := range s.sets {
				t := &all[set][0][v]
				sums[0] += t.precision()
				sums[1] += t.recall()
				worst = min(worst, t.precision(), t.recall())
			}
			if worst > bestWorst {
				bestAt, bestWorst = v, worst
			}
		}
		n := float64(variants * len(s.sets))
		precision, recall := sums[0]/n, sums[1]/n
		res := claim.Result{
			Measured: fmt.Sprintf("at best (%s) at least %.2f on every row; on average precision %.3f, recall %.3f",
				s.name(bestAt), bestWorst, precision, recall),
			Pass: bestWorst == 1 && precision >= 0.95 && recall >= 0.99,
			Notes: []string{
				setting, scoring,
				fmt.Sprintf("%d traces of each anomaly; one run of a trace serves all %d combinations; passes when one "+
					"combination has 1.00 everywhere, and the mean over all of them is at least 0.95 and 0.99", s.traces, variants),
			},
		}
		for set, k := range rows {
			res.Tables = append(res.Tables, s.table(k, all[set][0]))
			chart := plot.Chart{Title: k.String(), XTitle: "epoch (µs)", YTitle: "precision", LogX: true}
			for th, late := range s.lab.thresholds {
				line := plot.Series{Name: fmt.Sprintf("%.0f %%", 100*late)}
				for i, length := range s.lab.lengths {
					line.X = append(line.X, float64(length)/float64(us))
					line.Y = append(line.Y, all[set][0][th*len(s.lab.lengths)+i].precision())
				}
				chart.Series = append(chart.Series, line)
			}
			res.Plots = append(res.Plots, claim.Plot{Suffix: fmt.Sprint(set + 1), Chart: chart})
		}
		return res, nil
	},
}

// name returns the name of a variant.
func (s *study) name(variant int) string {
	n := len(s.lab.lengths)
	return fmt.Sprintf("%.0f %%, %v", 100*s.lab.thresholds[variant/n], s.lab.lengths[variant%n])
}

// table returns the tallies of all variants.
func (s *study) table(k kind, tallies []tally) claim.Table {
	t := claim.Table{Title: k.String() + ": precision / recall, by threshold and epoch", Header: []string{"RTT"}}
	for _, length := range s.lab.lengths {
		t.Header = append(t.Header, length.Round(time.Microsecond).String())
	}
	for th, late := range s.lab.thresholds {
		row := []string{fmt.Sprintf("%.0f %%", 100*late)}
		for i := range s.lab.lengths {
			x := &tallies[th*len(s.lab.lengths)+i]
			row = append(row, fmt.Sprintf("%.2f / %.2f", x.precision(), x.recall()))
		}
		t.Row(row...)
	}
	return t
}
