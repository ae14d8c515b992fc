package hawkeye

import (
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/lateness"
)

func TestScoreAccount(t *testing.T) {
	p, q := model.Port{Node: 1, Port: 1}, model.Port{Node: 2, Port: 1}
	a, b := model.FlowKey{SrcPort: 1}, model.FlowKey{SrcPort: 2}
	exact := &lateness.Account{Late: 100 * engine.Nanosecond, Terms: []lateness.Term{
		{Place: lateness.Queue{Port: p}, Kind: lateness.Contention, Time: 60 * engine.Nanosecond, Parties: []lateness.Party{
			{Flow: a, Time: 45 * engine.Nanosecond}, {Flow: b, Time: 15 * engine.Nanosecond},
		}},
		{Place: lateness.Queue{Port: q}, Kind: lateness.HostInjection, Time: 40 * engine.Nanosecond, Parties: []lateness.Party{
			{Host: 7, Time: 40 * engine.Nanosecond},
		}},
	}}
	at := func(place model.Port, k lateness.Kind, flow model.FlowKey, host model.NodeID, ns float64) attribution {
		return attribution{place, k, flow, host, ns}
	}
	for name, tc := range map[string]struct {
		given []attribution
		want  accountScore
	}{
		"exact": {exactAttributions(exact), accountScore{100, 0, 0, true}},
		"in parts": {
			[]attribution{
				at(p, lateness.Contention, a, 0, 40), at(p, lateness.Contention, a, 0, 5),
				at(p, lateness.Contention, b, 0, 15), at(q, lateness.HostInjection, model.FlowKey{}, 7, 40),
			}, accountScore{100, 0, 0, true},
		},
		"nothing": {nil, accountScore{100, 1, 1, false}},
		"other shares of the flows": {
			[]attribution{
				at(p, lateness.Contention, a, 0, 15), at(p, lateness.Contention, b, 0, 45),
				at(q, lateness.HostInjection, model.FlowKey{}, 7, 40),
			}, accountScore{100, 0, 0.3, true},
		},
		"all of it the host's":   {[]attribution{at(q, lateness.HostInjection, model.FlowKey{}, 7, 100)}, accountScore{100, 0.6, 0.6, false}},
		"another kind":           {[]attribution{at(p, lateness.HostInjection, model.FlowKey{}, 3, 100)}, accountScore{100, 1, 1, false}},
		"much of it unexplained": {[]attribution{at(p, lateness.Contention, a, 0, 55)}, accountScore{100, 0.45, 0.55, true}},
		"more than the lateness": {append(exactAttributions(exact), at(q, lateness.Contention, a, 0, 50)), accountScore{100, 0.25, 0.25, true}},
	} {
		got := scoreAccount(exact, tc.given)
		if math.Abs(got.places-tc.want.places) > 1e-9 || math.Abs(got.parties-tc.want.parties) > 1e-9 || got.top != tc.want.top || got.late != tc.want.late {
			t.Errorf("%s: %+v; want %+v", name, got, tc.want)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var l accountScores
	for i := range 100 {
		l = append(l, accountScore{places: float64(100 - i), top: i%4 != 0})
	}
	places := func(s accountScore) float64 { return s.places }
	if a, b := l.quantile(0.5, places), l.quantile(0.95, places); a != 50 || b != 95 || l.topShare() != 0.75 {
		t.Errorf("median %v, p95 %v, top %v; want 50, 95, 0.75", a, b, l.topShare())
	}
	if !math.IsNaN(accountScores(nil).quantile(0.5, places)) {
		t.Error("the median of nothing; want none")
	}
}

// The account of a detection's packet is of the time that the host measured, and
// adds up; most of it has a cause.
func TestDetectionsHaveExactAccounts(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, k := range []kind{burst, storm, inLoop} {
		r, err := best(claim.Options{}).simulate(t.Context(), 1, 0.1, k)
		if err != nil {
			t.Fatal(err)
		}
		accounts, late, unexplained := 0, engine.Time(0), engine.Time(0)
		for i := range r.detections {
			d := &r.detections[i]
			if d.account == nil {
				if d.detectedBy == agent.RTT || d.detectedBy == agent.Age {
					t.Errorf("%v: no account of %v at %v", k, d.key, d.at)
				}
				continue
			}
			accounts++
			sum := engine.Time(0)
			for _, term := range d.account.Terms {
				if sum += term.Time; term.Kind == lateness.Unexplained {
					unexplained += term.Time
				}
			}
			late += d.account.Late
			took := (d.account.At - d.account.Sent).Duration()
			if off := took - d.latency; sum != d.account.Late || off < -2*time.Nanosecond || off > 2*time.Nanosecond {
				t.Errorf("%v: %v took %v and its terms add up to %v of %v; the host measured %v", k, d.key, took, sum, d.account.Late, d.latency)
			}
		}
		if accounts == 0 || unexplained > late/100 {
			t.Errorf("%v: %d accounts, %v of %v unexplained; want some, and at most a hundredth", k, accounts, unexplained, late)
		}
	}
}

// The verdicts of today name one cause of several.
func TestFirstVerdictsAreScored(t *testing.T) {
	race.LeaveToPlainRun(t)
	s := study{lab: best(claim.Options{}), sets: single([]kind{storm, contention}), traces: 1}
	all, err := scoreAccounts(t.Context(), claim.Options{Seed: 1}, s, accounting{hawkeyeMethod, firstVerdict})
	if err != nil {
		t.Fatal(err)
	}
	scores := all[0]
	table := accountTable("first verdicts", []string{storm.String(), contention.String()}, scores)
	for _, row := range table.Rows {
		t.Log(row)
	}
	if n := len(table.Rows); n != 3 || len(scores[0]) == 0 || scores[0].topShare() < 0.5 {
		t.Errorf("%d rows, %d storms, %v with the largest cause; want 3, some, most", n, len(scores[0]), scores[0].topShare())
	}
}
