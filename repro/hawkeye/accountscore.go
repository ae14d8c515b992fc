package hawkeye

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim/lateness"
)

// accountScore compares the account of one late packet with the exact one. An
// error is the share of the lateness that is attributed to something else: half
// the sum of all differences.
type accountScore struct {
	late    float64 // ns
	places  float64 // error by location and kind
	parties float64 // error by location, kind and party
	top     bool    // the location and kind with the largest part are the same
}

// scoreAccount compares an account with the exact one. What is missing to the
// lateness is unexplained.
func scoreAccount(exact *lateness.Account, given []attribution) accountScore {
	s := accountScore{late: nanoseconds(exact.Late)}
	sum := 0.0
	for i := range given {
		sum += given[i].ns
	}
	if sum < s.late {
		given = append(slices.Clip(given), attribution{kind: lateness.Unexplained, ns: s.late - sum})
	}
	truth := exactAttributions(exact)
	wantParties, gotParties := sums(truth, true), sums(given, true)
	wantPlaces, gotPlaces := sums(truth, false), sums(given, false)
	s.parties = difference(wantParties, gotParties) / 2 / s.late
	s.places = difference(wantPlaces, gotPlaces) / 2 / s.late
	s.top = largest(wantPlaces) == largest(gotPlaces)
	return s
}

// sums adds up attributions to the same cause, with or without the party.
func sums(list []attribution, parties bool) map[attribution]float64 {
	all := map[attribution]float64{}
	for _, a := range list {
		key := attribution{place: a.place, kind: a.kind}
		if parties {
			key.flow, key.host = a.flow, a.host
		}
		all[key] += a.ns
	}
	return all
}

func difference(a, b map[attribution]float64) (sum float64) {
	for k, v := range a {
		sum += math.Abs(v - b[k])
	}
	for k, v := range b {
		if _, both := a[k]; !both {
			sum += v
		}
	}
	return sum
}

// largest returns the cause with the largest part; of equal ones the first by
// location and kind.
func largest(all map[attribution]float64) (best attribution) {
	most := -1.0
	for k, v := range all {
		if v > most || v == most && cmp.Or(k.place.Compare(best.place), cmp.Compare(k.kind, best.kind)) < 0 {
			best, most = k, v
		}
	}
	return best
}

// accountScores are the scores of many packets.
type accountScores []accountScore

// quantile returns a quantile of an error: the smallest that so large a share of
// the packets does not exceed.
func (l accountScores) quantile(share float64, of func(accountScore) float64) float64 {
	if len(l) == 0 {
		return math.NaN()
	}
	all := make([]float64, len(l))
	for i, s := range l {
		all[i] = of(s)
	}
	slices.Sort(all)
	return all[max(0, int(math.Ceil(share*float64(len(all))))-1)]
}

// topShare returns the share of packets with the right largest cause.
func (l accountScores) topShare() float64 {
	right := 0
	for _, s := range l {
		if s.top {
			right++
		}
	}
	return float64(right) / float64(max(1, len(l)))
}

// accountTable prints distributions, a row for each name and one for all.
func accountTable(title string, names []string, scores []accountScores) claim.Table {
	t := claim.Table{Title: title, Header: []string{
		"anomaly", "late packets", "error by location, median", "95 %", "with parties, median", "95 %", "largest cause right",
	}}
	row := func(name string, l accountScores) {
		places, parties := func(s accountScore) float64 { return s.places }, func(s accountScore) float64 { return s.parties }
		t.Row(name, fmt.Sprint(len(l)), percent(l.quantile(0.5, places)), percent(l.quantile(0.95, places)),
			percent(l.quantile(0.5, parties)), percent(l.quantile(0.95, parties)), percent(l.topShare()))
	}
	for i, name := range names {
		row(name, scores[i])
	}
	row("all", slices.Concat(scores...))
	return t
}

func percent(x float64) string {
	if math.IsNaN(x) {
		return "none"
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}
