package hawkeye

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/analyze/provenance/drawing"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

// caseStudies are the cases of section 4.4.
var caseStudies = []kind{burst, storm, inLoop, outInjection}

// exhibit is the first detection of a trace whose verdict names what was
// injected, with its graph.
type exhibit struct {
	verdict diagnose.Verdict
	named   diagnose.VerdictView
	drawing *drawing.Drawing
}

// firstExhibit finds an exhibit; nil if there is none.
func (r *run) firstExhibit() (*exhibit, error) {
	list, err := r.diagnose(hawkeyeMethod, 0)
	if err != nil {
		return nil, err
	}
	f := r.net.Fabric()
	for i := range list {
		for _, v := range list[i].verdicts {
			// A trigger that an earlier detection saw is not in the graph of a later one.
			shown := len(v.DeadlockCycle) == 0 || slices.Contains(v.Path, v.Initial) || slices.Contains(v.DeadlockCycle, v.Initial)
			if list[i].account == nil || v.Anomaly != r.trace.causes[0].anomaly || !shown {
				continue
			}
			truth := r.truthOf(list[i].account)
			if injected, _ := truth.main(); injected == 0 && r.isRight(&truth, nanoseconds(list[i].account.Late), &v) {
				g := provenance.Build(list[i].evidence, list[i].key, f)
				return &exhibit{v, v.View(f), drawing.New(g, f, drawing.DefaultOptions())}, nil
			}
		}
	}
	return nil, nil
}

var caseStudiesClaim = claim.Claim{
	ID: "hawkeye-cases", Where: "section 4.4, figure 12",
	Says: "graphs of the four case studies show the PFC path, the deadlock cycle, and the flows or the host " +
		"that cause it",
	Published: "four graphs",
	Mutations: []claim.Mutation{flowTelemetry},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		t := claim.Table{Title: "case studies", Header: []string{"case", "verdict", "ports in the graph", "flows", "edges"}}
		chart := plot.Chart{
			Title: "graphs of the case studies", YTitle: "number",
			Series: []plot.Series{{Name: "ports"}, {Name: "flows"}, {Name: "edges"}},
		}
		res := claim.Result{Notes: []string{
			setting + "; load 10 %",
			"the first detection whose verdict names what was injected; weft run draws such graphs, too",
		}}
		found := 0
		for i, k := range caseStudies {
			o.Report(float64(i)/float64(len(caseStudies)), k.String())
			r, err := best(o).simulate(ctx, claim.Rand(o.Seed, uint64(k)).Uint64(), 0.1, k)
			if err != nil {
				return res, err
			}
			e, err := r.firstExhibit()
			if err != nil {
				return res, err
			}
			chart.Groups = append(chart.Groups, k.String())
			if e == nil {
				t.Row(k.String(), "not found")
				e = &exhibit{drawing: &drawing.Drawing{}}
			} else {
				found++
				t.Row(k.String(), e.named.Sentence(), fmt.Sprint(len(e.drawing.Ports)), fmt.Sprint(len(e.drawing.Flows)),
					fmt.Sprint(len(e.drawing.Edges)))
			}
			for j, n := range []int{len(e.drawing.Ports), len(e.drawing.Flows), len(e.drawing.Edges)} {
				chart.Series[j].Y = append(chart.Series[j].Y, float64(n))
			}
		}
		res.Measured, res.Pass = fmt.Sprintf("%d of %d cases", found, len(caseStudies)), found == len(caseStudies)
		res.Tables, res.Plots = []claim.Table{t}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}
