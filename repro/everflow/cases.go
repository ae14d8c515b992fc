package everflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/examples"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/scenario"
)

// caseFiles are the case studies, as scenarios that state what mirrors must
// show.
var caseFiles = []string{
	"traced-drop", "traced-blackhole", "traced-move", "traced-imbalance", "slow-mux",
	"traced-slow-link", "traced-storm",
}

var cases = claim.Claim{
	ID: "everflow-cases", Where: "case studies",
	Says:      "traces explain faults of many kinds: silent drops, blackholes, loops, ECMP imbalance, a slow load balancer, a slow link, PFC storms",
	Published: "each is explained",
	Mutations: []claim.Mutation{allMirrors},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		seeds := o.Pick(5, 1)
		res := claim.Result{Pass: true, Notes: []string{
			fmt.Sprintf("examples/NAME.yaml, run with %d seeds; passes when all that a file expects of its traces is found in every run, and nothing else is. Other expectations of the files are not judged here", seeds),
		}}
		table := claim.Table{Title: "case studies", Header: []string{"scenario", "runs", "explained"}}
		chart := plot.Chart{
			Title: "runs in which traces explain the fault", YTitle: "%",
			Series: []plot.Series{{Name: "runs"}},
		}
		right, all := 0, 0
		for i, name := range caseFiles {
			text, err := examples.Files.ReadFile(name + ".yaml")
			if err != nil {
				return res, err
			}
			explained := 0
			for k := range seeds {
				o.Report(float64(i*seeds+k)/float64(len(caseFiles)*seeds), name)
				ok, err := explainedByTraces(ctx, name, text, o.Seed+uint64(k), o.Without(allMirrors))
				if err != nil {
					return res, err
				}
				explained += boolToInt(ok)
			}
			table.Row(name, fmt.Sprint(seeds), fmt.Sprint(explained))
			chart.Groups = append(chart.Groups, strings.TrimPrefix(name, "traced-"))
			chart.Series[0].Y = append(chart.Series[0].Y, 100*float64(explained)/float64(seeds))
			right, all = right+explained, all+seeds
		}
		res.Measured = fmt.Sprintf("explained in %d of %d runs", right, all)
		res.Pass = right == all
		res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}

// explainedByTraces runs a scenario and reports whether its traces show what they should.
func explainedByTraces(ctx context.Context, name string, text []byte, seed uint64, blind bool) (bool, error) {
	s, err := scenario.Parse(name+".yaml", text)
	if err != nil {
		return false, err
	}
	s.Seed = seed
	if blind {
		s.Telemetry = slices.DeleteFunc(s.Telemetry, func(p scenario.Program) bool { return p.Kind == "mirror" })
	}
	r, err := scenario.Run(ctx, s, scenario.Options{}, nil)
	if err != nil {
		return false, err
	}
	asked, met := 0, 0
	for _, e := range r.Expected {
		if strings.HasPrefix(e.What, "traces: ") {
			asked++
			met += boolToInt(e.Pass)
		}
	}
	return asked > 1 && met == asked, nil // one expectation is that nothing else is found
}
