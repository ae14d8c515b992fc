// Package audit measures telemetry that audits itself: whether a source that lies is named,
// how soon, and whether faults of the fabric are taken for lies. It is not the claim of a
// paper: the figures are Weft's own. Manual: docs/sources.md.
package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

// Claims lists them.
func Claims() []claim.Claim { return []claim.Claim{lies} }

// witnesses is what a laboratory can remove.
var witnesses = claim.Mutation{Name: "witnesses", Removes: "no switch exports flowsets but one, and no two sources count the same packets"}

// score counts the runs of one kind.
type score struct {
	runs, named int
	accused     int // sources that are right and were named
	latest      time.Duration
	texts       []string // of the accused
}

var lies = claim.Claim{
	ID: "audit-lies", Where: "docs/sources.md",
	Says:      "a source that is wrong by 1 % in one counter is named within a second; none is named on healthy fabrics, nor because of faults of the fabric",
	Published: "no paper; goal: all within 1 s, none without cause",
	Mutations: []claim.Mutation{witnesses},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		list := []kind{sentPackets, sentBytes, flowset, healthy, lossyLink, storm}
		if !o.Quick {
			list = nil
			for k := range numKinds {
				list = append(list, k)
			}
		}
		seeds := o.Pick(10, 1)
		by := make([]score, numKinds)
		for i := range seeds {
			for j, k := range list {
				o.Report(float64(i*len(list)+j)/float64(seeds*len(list)), k.String())
				in, err := inject(k, claim.Rand(o.Seed, uint64(k)<<32|uint64(i)).Uint64()>>1, o.Without(witnesses))
				if err != nil {
					return claim.Result{}, fmt.Errorf("%v, case %d: %w", k, i, err)
				}
				out, err := observe(ctx, in, k)
				if err != nil {
					return claim.Result{}, fmt.Errorf("%v, case %d: %w", k, i, err)
				}
				s := &by[k]
				s.runs++
				s.accused += len(out.wrong)
				for _, w := range out.wrong {
					s.texts = append(s.texts, fmt.Sprintf("named without cause (%v, case %d): %s", k, i, w.Text))
				}
				if out.right {
					s.named++
					s.latest = max(s.latest, out.after)
				}
				if o.Broken() && k.lies() && !out.right {
					return result(by, list), nil
				}
			}
		}
		return result(by, list), nil
	},
}

// result makes a result of the scores.
func result(by []score, list []kind) claim.Result {
	var wrong, named, accused, others int
	var latest time.Duration
	t := claim.Table{Title: "sources that were named", Header: []string{"injected", "runs", "named", "latest after", "others named"}}
	chart := plot.Chart{Title: "Lying sources that were named", YTitle: "share", Series: []plot.Series{{Name: "named"}}}
	for _, k := range list {
		s := &by[k]
		after := ""
		if k.lies() {
			wrong, named, latest = wrong+s.runs, named+s.named, max(latest, s.latest)
			after = s.latest.String()
			chart.Groups = append(chart.Groups, k.String())
			chart.Series[0].Y = append(chart.Series[0].Y, float64(s.named)/float64(max(s.runs, 1)))
		} else {
			others += s.runs
		}
		accused += s.accused
		t.Row(k.String(), fmt.Sprint(s.runs), fmt.Sprint(s.named), after, fmt.Sprint(s.accused))
	}
	r := claim.Result{
		Measured: fmt.Sprintf("%d of %d named, after %v at most; %d others named in these and %d runs without a lie", named, wrong, latest, accused, others),
		Pass:     named == wrong && wrong > 0 && latest <= time.Second && accused == 0,
		Notes: []string{
			"fat-tree with k=4, links scaled to 1 Gb/s, flowsets of 10 ms, counters of packets and bytes that ports sent, load of 20 to 50 %",
			"a lie is 1 % too much or too little, of a port between two switches or of a whole flowset; the state is asked for every 50 ms",
		},
		Tables: []claim.Table{t}, Plots: []claim.Plot{{Chart: chart}},
	}
	for _, k := range list {
		r.Notes = append(r.Notes, by[k].texts...)
	}
	return r
}
