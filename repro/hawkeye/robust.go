package hawkeye

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

// judged runs a study of Hawkeye alone under one choice of parameters and
// returns the result, row by row.
func judged(ctx context.Context, o claim.Options, s study, names []string) (claim.Result, tally, error) {
	s.methods = []method{hawkeyeMethod}
	all, err := s.run(ctx, o)
	if err != nil {
		return claim.Result{}, tally{}, err
	}
	var sum tally
	t := claim.Table{Title: "diagnosis requests", Header: []string{
		"anomaly", "requests", "answered", "right", "precision", "recall",
	}}
	c := plot.Chart{
		Title: "precision and recall", Groups: names,
		Series: []plot.Series{{Name: "precision"}, {Name: "recall"}},
	}
	for i, name := range names {
		x := all[i][0][0]
		sum.add(x)
		t.Row(name, fmt.Sprint(x.requests), fmt.Sprint(x.answered), fmt.Sprint(x.right), fmt.Sprintf("%.3f", x.precision()),
			fmt.Sprintf("%.3f", x.recall()))
		c.Series[0].Y = append(c.Series[0].Y, x.precision())
		c.Series[1].Y = append(c.Series[1].Y, x.recall())
	}
	return claim.Result{
		Measured: fmt.Sprintf("precision %.3f, recall %.3f: %d of %d requests answered, %d right", sum.precision(),
			sum.recall(), sum.answered, sum.requests, sum.right),
		Notes:  []string{setting, scoring, "threshold 300 %, epochs of 500 µs"},
		Tables: []claim.Table{t}, Plots: []claim.Plot{{Chart: c}},
	}, sum, nil
}

func rowNames() (names []string) {
	for _, k := range rows {
		names = append(names, k.String())
	}
	return names
}

var twoAtOnce = claim.Claim{
	ID: "hawkeye-two", Where: "section 3.4",
	Says:      "two anomalies at the same time are distinguished",
	Published: "supported; no figure",
	Mutations: []claim.Mutation{inNetworkTracing},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		pairs := [][]kind{
			{burst, storm},
			{burst, contention},
			{storm, contention},
			{inLoop, burst},
			{inLoop, storm},
			{outInjection, contention},
		}
		var names []string
		for _, p := range pairs {
			names = append(names, p[0].String()+" and "+p[1].String())
		}
		res, sum, err := judged(ctx, o, study{lab: best(o), sets: pairs, traces: o.Pick(17, 2)}, names)
		res.Pass = sum.precision() >= 0.95 && sum.recall() >= 0.95
		res.Notes = append(res.Notes, "both must be named; passes when precision and recall are at least 0.95")
		return res, err
	},
}

var undisturbed = claim.Claim{
	ID: "hawkeye-quiet", Where: "section 4.2",
	Says:      "without an injected anomaly only true contention is reported",
	Published: "no figure",
	Mutations: []claim.Mutation{flowTelemetry},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		res, sum, err := judged(ctx, o, study{lab: best(o), sets: single([]kind{quiet}), traces: o.Pick(100, 10), load: 0.6},
			[]string{quiet.String()})
		res.Pass = sum.precision() >= 0.95
		res.Notes = append(res.Notes, "load 60 %; passes when precision is at least 0.95")
		return res, err
	},
}

var clocks = claim.Claim{
	ID: "hawkeye-clocks", Where: "section 3.3",
	Says:      "epochs of switches need not begin together: clocks may be 100 µs apart",
	Published: "no figure",
	Mutations: []claim.Mutation{inNetworkTracing},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		l := best(o)
		l.skew = 100 * us
		res, sum, err := judged(ctx, o, study{lab: l, sets: single(rows), traces: o.Pick(17, 2)}, rowNames())
		res.Pass = sum.precision() >= 0.95 && sum.recall() >= 0.95
		res.Notes = append(res.Notes, "each device's clock is up to 100 µs ahead; passes when precision and recall are "+
			"at least 0.95")
		return res, err
	},
}

var lostReports = claim.Claim{
	ID: "hawkeye-loss", Where: "section 3.4",
	Says:      "lost reports lower the confidence of verdicts, and do not make them wrong",
	Published: "no figure",
	Mutations: []claim.Mutation{inNetworkTracing},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		l := best(o)
		l.loss = 0.2
		res, sum, err := judged(ctx, o, study{lab: l, sets: single(rows), traces: o.Pick(17, 2)}, rowNames())
		res.Pass = sum.precision() >= 0.95 && sum.recall() >= 0.5
		res.Notes = append(res.Notes, "every fifth datagram of reports is lost; passes when precision is at least 0.95 and recall 0.5")
		return res, err
	},
}
