package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro"
	"github.com/weft-telemetry/weft/repro/claim"
)

// mainInvented is weft with invented papers, so that scripts know the verdicts.
func mainInvented() {
	a := &app{papers: inventedPapers()}
	os.Exit(a.run(os.Args[1:], os.Stdout, os.Stderr))
}

// Mutations of the invented claims: one is noticed, one is not, one cannot run.
var (
	loaded = claim.Mutation{Name: "fair die", Removes: "the die is loaded and never shows six"}
	silent = claim.Mutation{Name: "throws", Removes: "the die is not thrown"}
	noCoin = claim.Mutation{Name: "coin", Removes: "there is no coin"}
)

func inventedPapers() []repro.Paper {
	return []repro.Paper{
		{Name: "dice", Title: "On Dice", Claims: []claim.Claim{
			{
				ID: "dice-six", Where: "section 1", Says: "a die shows six in one throw of six", Published: "16.7 %",
				Mutations: []claim.Mutation{loaded, silent},
				Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
					o.Report(0.5, "throwing")
					rate, err := claim.Trials(ctx, o.Pick(60000, 600), o.Seed, func(rng *rand.Rand) (bool, error) {
						return rng.IntN(6) == 5 && !o.Without(loaded), nil
					})
					t := claim.Table{Title: "throws", Header: []string{"all", "sixes"}}
					t.Row(fmt.Sprint(rate.Of), fmt.Sprint(rate.Hits))
					low, high := rate.Interval()
					return claim.Result{
						Measured: rate.String(), Pass: low < 1.0/6 && 1.0/6 < high,
						Notes: []string{"one die"}, Tables: []claim.Table{t},
						Plots: []claim.Plot{{Chart: plot.Chart{Title: "sixes"}}, {Suffix: "two", Chart: plot.Chart{}}},
					}, err
				},
			},
			{
				ID: "dice-seven", Where: "section 2", Says: "a die shows seven", Published: "never seen",
				Run: func(context.Context, claim.Options) (claim.Result, error) {
					return claim.Result{Measured: "0 of 6"}, nil
				},
			},
		}},
		{Name: "coins", Title: "On Coins", Claims: []claim.Claim{{
			ID: "coins-edge", Where: "figure 3", Says: "a coin stands on its edge", Published: "once",
			Mutations: []claim.Mutation{noCoin},
			Run: func(context.Context, claim.Options) (claim.Result, error) {
				return claim.Result{}, errors.New("toss coin: no coin")
			},
		}}},
		{Name: "cards", Title: "On Cards"},
	}
}
