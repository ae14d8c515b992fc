package dta

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/collect/bound"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
)

var keyWriteBounds = claim.Claim{
	ID: "dta-key-write-bounds", Where: "section 4, formulas (1) to (4)",
	Says:      "when a tenth as many keys as slots were written since, a Key-Write query has no answer this often, with N = 1, 2, 4; wrong answers are bounded by (4)",
	Published: "9.5 %, 3.3 %, 1.2 %",
	Run:       runKeyWriteBounds,
	Mutations: []claim.Mutation{copies},
}

// tolerance is how far a measured share of n may be from p by chance: four
// standard deviations.
func tolerance(p float64, n int) float64 { return 4 * math.Sqrt(p/float64(n)) }

func runKeyWriteBounds(ctx context.Context, o claim.Options) (claim.Result, error) {
	const slots = 1 << 16
	queries := o.Pick(1_000_000, 100_000)
	res := claim.Result{Pass: true, Notes: []string{
		fmt.Sprintf("%d slots, %d queries each, of keys exactly α·slots reports old", slots, queries),
		"wrong answers are too rare to see with 32 bits of checksum: 8 bits show them",
		"passes if every share is below its bound, but for four standard deviations, and the empty ones with 32 bits within a tenth of it; with 8 bits the bound counts every disagreement of copies as a failure, which a vote often resolves",
	}}
	table := claim.Table{
		Title:  "queries without an answer, and with a wrong one",
		Header: []string{"N", "bits", "α", "empty", "(1)+(2)+(3)", "wrong", "(4)"},
	}
	chart := plot.Chart{
		Title: "Key-Write queries without an answer", XTitle: "α: later keys per slot",
		YTitle: "% empty",
	}
	loads := []float64{0.05, 0.1, 0.2, 0.5, 1}
	var shown []string
	step := 0
	for _, n := range []int{1, 2, 4} {
		var measured, formula []float64
		for _, bits := range []int{32, 8} {
			for _, alpha := range loads {
				o.Report(float64(step)/float64(6*len(loads)), fmt.Sprintf("N=%d, %d bits, α=%v", n, bits, alpha))
				step++
				f, err := failuresAtAge(ctx, keywrite.Config{
					Layout: keywrite.Weft, Slots: slots, Value: 4,
					Check: bits, Seed: o.Seed,
				}, written(o, n), int(alpha*slots), queries)
				if err != nil {
					return res, err
				}
				b := bound.KnownCopies(bound.Load(alpha*float64(n)), n, math.Exp2(-float64(bits)))
				table.Row(fmt.Sprint(n), fmt.Sprint(bits), fmt.Sprint(alpha), percent(f.empty), percent(b.Empty),
					percent(f.wrong), percent(b.Wrong))
				if f.empty > b.Empty+tolerance(b.Empty, queries) || f.wrong > b.Wrong+tolerance(b.Wrong, queries) {
					res.Pass = false
				}
				if bits == 32 {
					if f.empty < 0.9*b.Empty-tolerance(b.Empty, queries) {
						res.Pass = false
					}
					measured, formula = append(measured, 100*f.empty), append(formula, 100*b.Empty)
					if alpha == 0.1 {
						shown = append(shown, percent(f.empty))
					}
				}
			}
		}
		chart.Series = append(chart.Series,
			plot.Series{Name: fmt.Sprintf("N=%d, measured", n), X: loads, Y: measured},
			plot.Series{Name: fmt.Sprintf("N=%d, bound", n), X: loads, Y: formula, Dashed: true})
	}
	res.Measured = fmt.Sprintf("%s, %s, %s", shown[0], shown[1], shown[2])
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, nil
}

var postcardBounds = claim.Claim{
	ID: "dta-postcard-bounds", Where: "appendix A.6, formulas (9) to (12)",
	Says:      "when a tenth as many paths as chunks were written since, a Postcarding query (5 hops, N = 2, 2^18 values of 32 bits) has no answer this often, and a wrong one with at most this chance",
	Published: "3.3 %, 1e-22",
	Run:       runPostcardBounds,
	Mutations: []claim.Mutation{copies},
}

func runPostcardBounds(ctx context.Context, o claim.Options) (claim.Result, error) {
	const chunks = 1 << 14
	queries := o.Pick(400_000, 50_000)
	res := claim.Result{Pass: true, Notes: []string{
		fmt.Sprintf("%d chunks in the paper's layout (plain), %d queries each, of paths exactly α·chunks reports old",
			chunks, queries),
		"few bits and hops show wrong answers; with the paper's sizes they are too rare to measure",
		"here the chance of a wrong answer is at least that of two keys with one 64-bit hash: with the paper's sizes 3.6e-21, not 1e-22",
		"passes if every share is below its bound, but for four standard deviations, and the empty ones within a tenth of it",
	}}
	table := claim.Table{
		Title:  "queries without an answer, and with a wrong one",
		Header: []string{"values", "bits", "hops", "N", "α", "empty", "(9)+(10)+(11)", "wrong", "(12)"},
	}
	chart := plot.Chart{Title: "Postcarding queries that fail", XTitle: "", YTitle: "% of queries"}
	var measuredE, formulaE, measuredW, formulaW []float64
	for i, c := range []struct {
		values, bits, hops, n int
		alpha                 float64
	}{{1 << 18, 32, 5, 2, 0.1}, {1 << 10, 32, 5, 4, 0.5}, {15, 6, 2, 1, 1}, {15, 6, 2, 2, 0.5}, {40, 8, 2, 2, 1}, {
		8,
		5, 3, 2, 1,
	}} {
		o.Report(float64(i)/6, fmt.Sprintf("%d values, %d bits", c.values, c.bits))
		f, b, err := pathFailuresAtAge(ctx,
			postcard.Config{
				Layout: postcard.Plain, Chunks: chunks, Hops: c.hops, Bits: c.bits,
				Seed: o.Seed,
			}, c.values, c.n, written(o, c.n), c.alpha, queries)
		if err != nil {
			return res, err
		}
		table.Row(fmt.Sprint(c.values), fmt.Sprint(c.bits), fmt.Sprint(c.hops), fmt.Sprint(c.n), fmt.Sprint(c.alpha),
			percent(f.empty), percent(b.Empty), percent(f.wrong), percent(b.Wrong))
		if f.empty > b.Empty+tolerance(b.Empty, queries) || f.empty < 0.9*b.Empty-tolerance(b.Empty, queries) ||
			f.wrong > b.Wrong+tolerance(b.Wrong, queries) {
			res.Pass = false
		}
		if i == 0 {
			res.Measured = fmt.Sprintf("%s, none of %d (bound %.2g)", percent(f.empty), queries, b.Wrong)
		}
		chart.Groups = append(chart.Groups, fmt.Sprintf("V=%d b=%d B=%d N=%d", c.values, c.bits, c.hops, c.n))
		measuredE, formulaE = append(measuredE, 100*f.empty), append(formulaE, 100*b.Empty)
		measuredW, formulaW = append(measuredW, 100*f.wrong), append(formulaW, 100*b.Wrong)
	}
	chart.Series = []plot.Series{
		{Name: "empty, measured", Y: measuredE},
		{Name: "empty, bound", Y: formulaE, Dashed: true},
		{Name: "wrong, measured", Y: measuredW},
		{Name: "wrong, bound", Y: formulaW, Dashed: true},
	}
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, nil
}

// pathFailuresAtAge is failuresAtAge for paths of random values.
func pathFailuresAtAge(ctx context.Context, cfg postcard.Config, values, n, copies int, alpha float64,
	queries int,
) (f failures, b bound.Bound, err error) {
	t, err := postcard.Open("", cfg)
	if err != nil {
		return f, b, err
	}
	defer t.Region().Close()
	known, list, err := distinctValues(cfg.Bits, values)
	if err != nil {
		return f, b, err
	}
	q := postcard.Query{Copies: n, Values: known}
	hops := make([]uint32, cfg.Hops)
	path := func(i uint64) []uint32 {
		for h := range hops {
			x := (i + 1) * 0x9e3779b97f4a7c15 * uint64(2*h+1)
			hops[h] = list[(x^x>>32)%uint64(len(list))]
		}
		return hops
	}
	w, key, dst := t.Writer(0), make([]byte, 8), make([]uint32, 0, 64)
	age := uint64(alpha * float64(cfg.Chunks))
	for i := range age + uint64(queries) {
		if i%(1<<14) == 0 && ctx.Err() != nil {
			return f, b, ctx.Err()
		}
		binary.LittleEndian.PutUint64(key, i)
		if err := w.Write(key, path(i), copies); err != nil {
			return f, b, err
		}
		if i < age {
			continue
		}
		binary.LittleEndian.PutUint64(key, i-age)
		a, err := t.Lookup(dst, key, q)
		switch {
		case err != nil:
			return f, b, err
		case a.Outcome != postcard.Found:
			f.empty++
		case !slices.Equal(a.Hops, path(i-age)):
			f.wrong++
		}
	}
	f.queries = queries
	f.empty /= float64(queries)
	f.wrong /= float64(queries)
	return f, t.Bound(bound.Load(alpha*float64(n)), q), nil
}

// distinctValues returns n values with distinct codes.
func distinctValues(bits, n int) (known *postcard.Values, list []uint32, err error) {
	if bits == 32 {
		for v := range uint32(n) {
			list = append(list, v)
		}
		known, err = postcard.NewValues(bits, list...)
		return known, list, err
	}
	for v := uint32(1); len(list) < n; v++ {
		if k, err := postcard.NewValues(bits, append(list, v)...); err == nil {
			known, list = k, append(list, v)
		}
	}
	return known, list, nil
}
