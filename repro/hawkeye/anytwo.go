package hawkeye

import (
	"context"
	"slices"

	"github.com/weft-telemetry/weft/repro/claim"
)

// anyTwo is every anomaly alone and with every other.
var anyTwo = claim.Claim{
	ID: "hawkeye-any-two", Where: "beyond the paper: section 3.4 supports several anomalies",
	Says:      "the six anomalies, pulsed storms and incasts on the path of acknowledgements are diagnosed, alone and any two at once",
	Published: "not measured",
	Mutations: []claim.Mutation{inNetworkTracing},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		kinds := append(slices.Clone(rows), pulsedStorm, ackPath)
		sets := single(kinds)
		for i, a := range kinds {
			for _, b := range kinds[i+1:] {
				sets = append(sets, []kind{a, b})
			}
		}
		all := len(sets)
		if o.Quick {
			// All alone would take most of the time: of these and the pairs a few.
			claim.Rand(o.Seed, 0).Shuffle(all, func(i, j int) { sets[i], sets[j] = sets[j], sets[i] })
			sets = sets[:9]
		}
		if o.Broken() {
			sets = [][]kind{{burst, storm}, {storm, pulsedStorm}}
		}
		names := make([]string, len(sets))
		for i, s := range sets {
			if names[i] = s[0].String(); len(s) > 1 {
				names[i] += " and " + s[1].String()
			}
		}
		res, sum, err := judged(ctx, o, study{lab: best(o), sets: sets, traces: o.Pick(6, 1)}, names)
		res.Pass = sum.precision() >= 0.97 && sum.recall() >= 0.97
		res.Notes = append(res.Notes, "acknowledgements are in the class of data where an incast delays them; --quick draws 9 of the "+
			"36 sets by the seed; passes when precision and recall are at least 0.97")
		return res, err
	},
}
