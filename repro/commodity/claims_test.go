package commodity

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/commodity"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/claim/claimtest"
)

// Every claim fails without what it is about.
func TestMutations(t *testing.T) {
	race.LeaveToPlainRun(t)
	claimtest.MutationsFail(t, Claims())
}

// The quick forms hold, and have a table and a plot.
func TestClaims(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, c := range []claim.Claim{verdicts, healthyRuns} {
		r, err := c.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Pass || len(r.Plots) == 0 || len(r.Tables) == 0 {
			t.Errorf("%s: measured %s, published %s, pass %v; want it to pass, with a table and a plot", c.ID, r.Measured, c.Published, r.Pass)
		}
	}
}

// The same seed gives the same verdicts, however many views look on.
func TestRunsAreRepeatable(t *testing.T) {
	race.LeaveToPlainRun(t)
	l := newLab(claim.Options{Quick: true})
	var last []commodity.Verdict
	for i, views := range [][]view{{usual}, {usual}} {
		r, err := l.simulate(t.Context(), 5, storm, 320*ms, 200*ms, views...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(last, r.verdicts[usual]); i > 0 && diff != "" {
			t.Errorf("the same seed gave other verdicts (-first +second):\n%s", diff)
		}
		if last = r.verdicts[usual]; len(last) == 0 {
			t.Error("no verdict about a storm")
		}
	}
}

// A verdict is scored once per cause and place, and wrong if one of them is, or the time.
func TestScore(t *testing.T) {
	f, err := lab{k: 4}.routes(1)
	if err != nil {
		t.Fatal(err)
	}
	fabric := f.Fabric()
	r := run{fabric: fabric, fault: fault{kind: storm, host: 3, start: 200 * ms, end: 500 * ms}}
	at := func(cause anomaly.Cause, node model.NodeID, from, to model.Time) commodity.Verdict {
		return commodity.Verdict{Cause: cause, Location: model.Port{Node: node}, From: from * 1e6, To: to * 1e6}
	}
	for name, tc := range map[string]struct {
		said []commodity.Verdict
		want score
	}{
		"nothing":         {nil, score{runs: 1}},
		"right, twice":    {[]commodity.Verdict{at(anomaly.Storm, 3, 200, 400), at(anomaly.Storm, 3, 200, 500)}, score{runs: 1, found: 1, right: 1}},
		"other host":      {[]commodity.Verdict{at(anomaly.Storm, 4, 200, 400)}, score{runs: 1, wrong: 1}},
		"other cause":     {[]commodity.Verdict{at(anomaly.SlowReceiver, 3, 200, 400)}, score{runs: 1, wrong: 1}},
		"too early":       {[]commodity.Verdict{at(anomaly.Storm, 3, 0, 200)}, score{runs: 1, wrong: 1}},
		"too late":        {[]commodity.Verdict{at(anomaly.Storm, 3, 500, 700)}, score{runs: 1, wrong: 1}},
		"and a notice":    {[]commodity.Verdict{at(anomaly.Storm, 3, 200, 400), at(anomaly.Contention, 30, 200, 400)}, score{runs: 1, found: 1, right: 1, notices: 1}},
		"and an invented": {[]commodity.Verdict{at(anomaly.Storm, 3, 200, 400), at(anomaly.Incast, 30, 200, 400)}, score{runs: 1, found: 1, right: 1, wrong: 1}},
	} {
		r.verdicts = map[view][]commodity.Verdict{usual: tc.said}
		if got := r.score(usual); got != tc.want {
			t.Errorf("%s: %+v; want %+v", name, got, tc.want)
		}
	}
}
