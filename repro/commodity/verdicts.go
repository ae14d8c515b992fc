package commodity

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

// usual is what operators of SONiC can have today: counters every 100 ms and one of 256
// packets.
var usual = view{100 * ms, 256}

var verdicts = claim.Claim{
	ID: "commodity-verdicts", Where: "docs/commodity.md",
	Says: "counters of 100 ms and samples of 1:256 name cause and place of a PFC storm, a slow receiver, an incast, an " +
		"ECMP imbalance and a blackhole of at least three intervals",
	Published: "no paper; goal: precision at least 0.95, recall at least 0.9, each",
	Mutations: []claim.Mutation{pfcCounters, samples},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		seeds := o.Pick(20, 2)
		scores, err := newLab(o).measure(ctx, o, jobsOf(o, faults, seeds, job{after: 220 * ms, views: []view{usual}}))
		if err != nil {
			return claim.Result{}, err
		}
		res := claim.Result{Pass: true, Notes: notes(o, fmt.Sprintf("%d seeds of each fault, which lasts 310 to 600 ms", seeds))}
		t := claim.Table{Title: "verdicts by fault", Header: []string{"fault", "runs", "found", "right verdicts", "wrong verdicts", "precision", "recall"}}
		chart := plot.Chart{
			Title: "Verdicts from counters of 100 ms and samples of 1:256", YTitle: "share",
			Series: []plot.Series{{Name: "precision"}, {Name: "recall"}},
		}
		var all score
		worst := score{runs: 1, found: 1}
		for _, k := range faults {
			s := scores[k][usual]
			all.add(*s)
			t.Row(k.String(), fmt.Sprint(s.runs), fmt.Sprint(s.found), fmt.Sprint(s.right), fmt.Sprint(s.wrong),
				fmt.Sprintf("%.3f", s.precision()), fmt.Sprintf("%.3f", s.recall()))
			chart.Groups = append(chart.Groups, k.String())
			chart.Series[0].Y, chart.Series[1].Y = append(chart.Series[0].Y, s.precision()), append(chart.Series[1].Y, s.recall())
			res.Pass = res.Pass && (o.Quick || s.precision() >= 0.95 && s.recall() >= 0.9)
			if s.precision()+s.recall() < worst.precision()+worst.recall() {
				worst = *s
			}
		}
		res.Pass = res.Pass && all.precision() >= 0.95 && all.recall() >= 0.9
		if o.Quick {
			res.Notes = append(res.Notes, "two runs of a fault give no share: all faults are judged together")
		}
		res.Measured = fmt.Sprintf("%v; least: %v", &all, &worst)
		res.Notes = append(res.Notes, fmt.Sprintf("%d notices of contention, which is load and no fault, are not scored", all.notices))
		res.Tables, res.Plots = []claim.Table{t}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}

var healthyRuns = claim.Claim{
	ID: "commodity-healthy", Where: "docs/commodity.md",
	Says:      "a fabric under load without a fault gets no verdict",
	Published: "no paper; goal: none in 50 runs",
	Mutations: []claim.Mutation{thresholds},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		seeds := o.Pick(50, 4)
		scores, err := newLab(o).measure(ctx, o, jobsOf(o, []anomalyKind{healthy}, seeds, job{lasts: 400 * ms, after: 220 * ms, views: []view{usual}}))
		if err != nil {
			return claim.Result{}, err
		}
		s := scores[healthy][usual]
		t := claim.Table{Title: "healthy runs", Header: []string{"runs", "verdicts", "notices of contention"}}
		t.Row(fmt.Sprint(s.runs), fmt.Sprint(s.wrong), fmt.Sprint(s.notices))
		chart := plot.Chart{
			Title: "Healthy runs", YTitle: "number", Groups: []string{"runs", "verdicts", "notices"},
			Series: []plot.Series{{Name: "healthy", Y: []float64{float64(s.runs), float64(s.wrong), float64(s.notices)}}},
		}
		return claim.Result{
			Measured: fmt.Sprintf("%d verdicts in %d runs", s.wrong, s.runs), Pass: s.wrong == 0,
			Notes: notes(o, "0.8 s each"), Tables: []claim.Table{t}, Plots: []claim.Plot{{Chart: chart}},
		}, nil
	},
}

// notes describes how a claim was measured.
func notes(o claim.Options, more string) []string {
	size := "fat-tree with k=8: 80 switches, 128 hosts"
	if o.Quick {
		size = "quick: fat-tree with k=4: 20 switches, 16 hosts"
	}
	return []string{
		size + "; " + setting, more,
		"truth is what was injected; a verdict is one cause at one place of a run, and wrong if either is",
	}
}

// samplings are those of the third claim: packets to a sample.
var samplings = []uint32{1, 256, 4096}

// pollings are the views of the third claim, for faults of three intervals and more, and
// for one of less than an interval.
var pollings = []struct {
	lasts time.Duration
	after time.Duration
	views []view
}{
	{400 * ms, 220 * ms, []view{{10 * ms, 1}, {10 * ms, 256}, {10 * ms, 4096}, {100 * ms, 1}, {100 * ms, 256}, {100 * ms, 4096}}},
	{3500 * ms, 2100 * ms, []view{{1000 * ms, 1}, {1000 * ms, 256}, {1000 * ms, 4096}}},
	{35 * time.Second, 21 * time.Second, []view{{10 * time.Second, 1}, {10 * time.Second, 256}, {10 * time.Second, 4096}}},
	{400 * ms, 2100 * ms, []view{{1000 * ms, 256}}},
}

var intervals = claim.Claim{
	ID: "commodity-intervals", Where: "docs/commodity.md",
	Says: "longer intervals and sparser samples find less, and what they find stays right: storms, slow receivers and " +
		"blackholes need counters alone; incasts and imbalance need samples",
	Published: "no paper; goal: precision at least 0.95 from 100 ms on",
	Mutations: []claim.Mutation{pfcCounters},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		l := newLab(o)
		l.k = 4
		seeds := o.Pick(10, 1)
		res := claim.Result{Pass: true, Notes: []string{
			"fat-tree with k=4; " + setting, fmt.Sprintf("%d seeds of each fault and duration", seeds),
			"judged from 100 ms on: precision of all faults, and that counters alone find storm, slow receiver and blackhole of at least three intervals",
		}}
		t := claim.Table{Title: "precision and recall by interval and sampling", Header: []string{"fault lasts", "interval, sampling"}}
		for _, k := range faults {
			t.Header = append(t.Header, k.String())
		}
		t.Header = append(t.Header, "all")
		found := map[uint32]*plot.Chart{}
		for _, sampling := range samplings {
			found[sampling] = recallChart(sampling)
		}
		worst := 1.0
		for i, p := range pollings {
			if o.Quick && i > 0 {
				continue // seconds take minutes
			}
			part := o
			part.Progress = func(done float64, doing string) { o.Report((float64(i)+done)/float64(len(pollings)), doing) }
			scores, err := l.measure(ctx, part, jobsOf(o, faults, seeds, job{lasts: p.lasts, after: p.after, views: p.views}))
			if err != nil {
				return res, err
			}
			for _, v := range p.views {
				row := []string{p.lasts.String(), v.String()}
				var all score
				chart, whole := found[v.sampling], p.lasts >= 3*v.interval
				if whole {
					chart.Groups = append(chart.Groups, v.interval.String())
				}
				for n, k := range faults {
					s := scores[k][v]
					all.add(*s)
					row = append(row, s.cell())
					if !whole {
						continue
					}
					chart.Series[n].Y = append(chart.Series[n].Y, s.recall())
					if counted := k == storm || k == slowReceiver || k == blackhole; counted && s.recall() < 0.9 {
						res.Pass = false
					}
				}
				t.Row(append(row, all.cell())...)
				if v.interval >= 100*ms {
					worst = min(worst, all.precision())
				}
			}
		}
		res.Pass = res.Pass && worst >= 0.95
		res.Measured = fmt.Sprintf("precision at least %.2f from 100 ms on", worst)
		res.Tables = []claim.Table{t}
		for _, sampling := range samplings {
			res.Plots = append(res.Plots, claim.Plot{Suffix: fmt.Sprint(sampling), Chart: *found[sampling]})
		}
		return res, nil
	},
}

// recallChart is the chart of one sampling rate, for faults of three intervals and more.
func recallChart(sampling uint32) *plot.Chart {
	c := &plot.Chart{Title: fmt.Sprintf("Faults of three intervals found, samples of 1:%d", sampling), XTitle: "interval of counters", YTitle: "recall"}
	for _, k := range faults {
		c.Series = append(c.Series, plot.Series{Name: k.String()})
	}
	return c
}
