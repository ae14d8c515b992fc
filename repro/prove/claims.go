// Package prove measures proofs by experiment: whether a run that is rebuilt from
// records shows what was recorded, whether the removal of the true cause mends it, and
// whether wrong verdicts are refuted. It is not the claim of a paper: the figures are
// Weft's own. Manual: docs/prove.md.
package prove

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/scenario/proof"
	"github.com/weft-telemetry/weft/scenario/served"
)

// Claims lists them.
func Claims() []claim.Claim { return []claim.Claim{verdicts, deliveredVerdicts} }

// Mechanisms that a laboratory can remove.
var (
	removal = claim.Mutation{Name: "removal", Removes: "the culprits stay in the run that should be without them"}
	meters  = claim.Mutation{Name: "meters", Removes: "records do not have what flows sent"}
)

// score counts the proofs of one kind of cause.
type score struct {
	cases, found   int // runs, and those with a right diagnosis
	rebuilt        int // of found: the lateness within 20 %
	restored       int // of rebuilt: without the true cause at most 1.3 times ideal
	together       int // of rebuilt: without all that the account names at most 1.3 times ideal
	sole, alone    int // of rebuilt: those whose account has no other cause, and of these the restored ones
	controls, held int // of rebuilt: those with a control, and where it does not mend it
	wrong, refuted int // wrong verdicts, of rebuilt
}

func (s *score) add(o score) {
	s.cases += o.cases
	s.found += o.found
	s.rebuilt += o.rebuilt
	s.restored += o.restored
	s.together += o.together
	s.sole += o.sole
	s.alone += o.alone
	s.controls += o.controls
	s.held += o.held
	s.wrong += o.wrong
	s.refuted += o.refuted
}

func share(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// holds reports whether the bars are met.
func (s *score) holds() bool {
	return share(s.rebuilt, s.found) >= 0.9 && share(s.restored, s.rebuilt) >= 0.95 &&
		(s.controls == 0 || share(s.held, s.controls) >= 0.95) && share(s.refuted, s.wrong) >= 0.9
}

var verdicts = claim.Claim{
	ID: "prove-verdicts", Where: "docs/prove.md",
	Says: "a run rebuilt from an incident's records is late as recorded; without the true cause the packet is in time, " +
		"without another flow it is not; wrong verdicts are refuted",
	Published: "no paper; goal: rebuilt within 20 % in 0.9, restored to 1.3 times ideal in 0.95, not by a control in 0.95, 0.9 of wrong verdicts refuted",
	Mutations: []claim.Mutation{removal, meters},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		each := o.Pick(25, 2)
		var all score
		by := make([]score, kinds)
		for i := range each {
			for k := range kinds {
				o.Report(float64(i*int(kinds)+int(k))/float64(each*int(kinds)), k.String())
				s, err := measure(ctx, o, k, o.Seed*1000+uint64(i))
				if err != nil {
					return claim.Result{}, fmt.Errorf("%v, case %d: %w", k, i, err)
				}
				by[k].add(s)
				all.add(s)
			}
		}
		res := claim.Result{
			Measured: fmt.Sprintf("%d of %d rebuilt, %d of %d restored, %d of %d controls not, %d of %d wrong verdicts refuted",
				all.rebuilt, all.found, all.restored, all.rebuilt, all.held, all.controls, all.refuted, all.wrong),
			Pass: all.found > 0 && all.holds(),
			Notes: []string{
				"fat-tree with k=4, links of 100 Gb/s, buffers of 2 to 6 MB, DCQCN, background load of 2 to 7 %; settings of switches are known, as by --fabric",
				"a right verdict is one about the injected cause at its place; runs without one, or without an account of a late packet, are not proven and are listed",
				"of a sole cause: the account attributes at least nine tenths of the lateness to it; another packet waits for something else, too, which the removal leaves",
				"without all of the account: the true cause is removed, and what else the packet waited for by its account",
				"truth is what was injected; a wrong verdict names another host, or as many other flows of the record",
			},
		}
		t := claim.Table{Title: "proofs by cause", Header: []string{"cause", "runs", "diagnosed", "rebuilt", "restored", "of a sole cause", "without all of the account", "control does not", "wrong refuted"}}
		chart := plot.Chart{
			Title: "Proofs by cause", YTitle: "share",
			Series: []plot.Series{{Name: "rebuilt"}, {Name: "restored"}, {Name: "wrong refuted"}},
		}
		for k := range kinds {
			s := &by[k]
			of := func(a, b int) string { return fmt.Sprintf("%d of %d", a, b) }
			t.Row(k.String(), fmt.Sprint(s.cases), fmt.Sprint(s.found), of(s.rebuilt, s.found), of(s.restored, s.rebuilt), of(s.alone, s.sole), of(s.together, s.rebuilt), of(s.held, s.controls), of(s.refuted, s.wrong))
			chart.Groups = append(chart.Groups, k.String())
			for i, v := range []float64{share(s.rebuilt, s.found), share(s.restored, s.rebuilt), share(s.refuted, s.wrong)} {
				chart.Series[i].Y = append(chart.Series[i].Y, v)
			}
		}
		res.Tables, res.Plots = []claim.Table{t}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}

// measure makes one case, and proves the true verdict and a wrong one.
func measure(ctx context.Context, o claim.Options, k kind, seed uint64) (s score, err error) {
	in, err := inject(k, seed)
	if err != nil {
		return s, err
	}
	rec, err := observe(ctx, in.scenario)
	if err != nil {
		return s, err
	}
	s.cases = 1
	list := in.about(rec.diagnoses)
	if len(list) == 0 {
		return s, nil
	}
	d, err := proof.Choose(list)
	if err != nil {
		return s, err
	}
	s.found = 1
	fabric, err := served.Fabric(&rec.topology)
	if err != nil {
		return s, err
	}
	served.Configure(fabric, in.scenario)
	named := in.culprits(d)
	if o.Without(removal) {
		named = in.wrong(rand.New(rand.NewPCG(seed, 7)), d, 1)
	}
	if o.Without(meters) {
		d.Account.Timeline.Senders = nil
	}
	r, err := proof.Prove(ctx, &proof.Case{Fabric: fabric, Diagnosis: d, Named: named})
	if proof.IsMissing(err) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if r.Verdict == proof.NotShown {
		return s, nil
	}
	s.rebuilt = 1
	if r.Without.Slowdown <= 1.3 {
		s.restored = 1
	}
	if s.restored == 1 || r.Together != nil && r.Together.Slowdown <= 1.3 {
		s.together = 1
	}
	if r.Share >= proof.Whole {
		s.sole, s.alone = 1, s.restored
	}
	if r.Control != nil {
		s.controls = 1
		if r.Control.Slowdown > 1.3 {
			s.held = 1
		}
	}
	wrong := in.wrong(rand.New(rand.NewPCG(seed, 8)), d, len(named.Flows))
	if r, err = proof.Prove(ctx, &proof.Case{Fabric: fabric, Diagnosis: d, Named: wrong}); err != nil {
		return s, err
	}
	s.wrong = 1
	if r.Verdict == proof.Refuted {
		s.refuted = 1
	}
	return s, nil
}
