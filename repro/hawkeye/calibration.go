package hawkeye

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/topo"
)

// calibration compares the confidence of answers with being right.
var calibration = claim.Claim{
	ID: "hawkeye-calibration", Where: "beyond the paper: section 3.4 has no confidence",
	Says:      "the confidence of a verdict is the probability that it is right",
	Published: "not measured",
	Mutations: []claim.Mutation{unexplainedTime},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		var bins reliability
		sets, by := single(append(slices.Clone(rows), pulsedStorm, ackPath)), hawkeyeMethod
		if o.Without(unexplainedTime) {
			sets, by = [][]kind{{inLoop, ackPath}}, alwaysCertain
		}
		for _, loss := range []float64{0, lossOfReports} {
			l := best(o)
			l.loss = loss
			s := study{lab: l, sets: sets, traces: o.Pick(10, 1), methods: []method{by}}
			s.more = func(_ int, r *run, _ method, list []diagnosis) {
				for i := range list {
					if t := r.score(list[i : i+1]); t.answered > 0 {
						bins.add(list[i].verdicts[0].Confidence, t.right > 0)
					}
				}
			}
			if _, err := s.run(ctx, o); err != nil {
				return claim.Result{}, err
			}
		}
		return bins.result(), nil
	},
}

// alwaysCertain names the longest cause whatever is unexplained, with full confidence.
var alwaysCertain = method{name: "always certain", collect: polled, infer: func(r *run, c *detection, e *provenance.Evidence) []diagnose.Verdict {
	cfg := diagnose.DefaultConfig(topo.NewIntent(r.routes))
	cfg.MinExplainedShare = math.SmallestNonzeroFloat64
	d, err := diagnose.New(cfg)
	if err != nil {
		panic(err) // the settings are ours
	}
	list := d.Diagnose(c.forAnalysis(), e, provenance.Build(e, c.key, r.net.Fabric()))
	for i := range list {
		list[i].Confidence = 1
	}
	return list
}}

// lossOfReports is the share of reports that is lost in one half of the traces: with
// all of them, most verdicts are certain.
const lossOfReports = 0.2

// A bin is judged from minAnswers on; its mean confidence and its share of right
// answers may differ by maxCalibrationError.
const (
	binWidth            = 0.1
	minAnswers          = 50
	maxCalibrationError = 0.1
)

// reliability counts answers by their confidence, in bins of binWidth.
type reliability [10]bin

// bin is the answers with about the same confidence.
type bin struct {
	answers, right int
	confidence     float64 // sum
}

func (r *reliability) add(confidence float64, right bool) {
	b := &r[min(int(confidence/binWidth), len(r)-1)]
	b.answers++
	b.confidence += confidence
	if right {
		b.right++
	}
}

// error returns by how much the mean confidence of a bin differs from its share of
// right answers.
func (b *bin) error() float64 {
	return math.Abs(b.confidence/float64(b.answers) - share(b.right, b.answers))
}

// result judges the bins that have enough answers; there must be one.
func (r *reliability) result() claim.Result {
	t := claim.Table{Title: "reliability", Header: []string{"confidence", "answers", "mean confidence", "right", "difference"}}
	line := plot.Series{Name: "right"}
	answers, right, judged, worst := 0, 0, 0, 0.0
	for i := range r {
		b := &r[i]
		if b.answers == 0 {
			continue
		}
		answers, right = answers+b.answers, right+b.right
		mean := b.confidence / float64(b.answers)
		t.Row(fmt.Sprintf("%.1f to %.1f", float64(i)*binWidth, float64(i+1)*binWidth), fmt.Sprint(b.answers), fmt.Sprintf("%.3f", mean),
			fmt.Sprintf("%.3f", share(b.right, b.answers)), fmt.Sprintf("%.3f", b.error()))
		line.X, line.Y = append(line.X, mean), append(line.Y, share(b.right, b.answers))
		if b.answers >= minAnswers {
			judged++
			worst = max(worst, b.error())
		}
	}
	return claim.Result{
		Measured: fmt.Sprintf("%d of %d answers right; confidence and being right differ by at most %.3f in %d bins of %d answers or more",
			right, answers, worst, judged, minAnswers),
		Pass: judged > 0 && worst <= maxCalibrationError,
		Notes: []string{
			setting, scoring,
			fmt.Sprintf("half of the traces with all reports, half with every fifth datagram lost; passes when no bin of %d answers or more "+
				"differs by more than %.1f", minAnswers, maxCalibrationError),
		},
		Tables: []claim.Table{t},
		Plots:  []claim.Plot{{Chart: plot.Chart{Title: "reliability", XTitle: "confidence", YTitle: "share of right answers", Series: []plot.Series{line}}}},
	}
}
