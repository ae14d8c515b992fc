package dta

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/claim/claimtest"
)

// Every claim fails without what it is about.
func TestMutations(t *testing.T) {
	race.LeaveToPlainRun(t)
	claimtest.MutationsFail(t, Claims())
}

// The fastest claim holds, gives the same result twice, and has a plot.
func TestQuickClaimHolds(t *testing.T) {
	var last claim.Result
	for i := range 2 {
		r, err := longevity.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Pass || len(r.Plots) == 0 || len(r.Tables) == 0 {
			t.Errorf("measured %s, published %s; want it to pass, with a table and a plot", r.Measured, longevity.Published)
		}
		if diff := cmp.Diff(last, r); i > 0 && diff != "" {
			t.Errorf("the same seed gave another result (-first +second):\n%s", diff)
		}
		last = r
	}
}

func TestMeanSuccess(t *testing.T) {
	// With one copy the mean over ages 0 to α is (1-e^-α)/α.
	for _, alpha := range []float64{0.1, 1, 3} {
		if got, want := meanFound(alpha, 1), -math.Expm1(-alpha)/alpha; math.Abs(got-want) > 1e-6 {
			t.Errorf("success(%v, 1) = %v; want %v", alpha, got, want)
		}
	}
}

func TestAgeingFindsWhatIsYoung(t *testing.T) {
	cfg := keywrite.Config{Layout: keywrite.Weft, Slots: 1 << 12, Value: 4, Check: 32}
	f, err := failuresAtAge(t.Context(), cfg, 2, 0, 1000)
	if err != nil || f.empty != 0 || f.wrong != 0 {
		t.Errorf("ageing of keys just written = %+v, %v; want no failure", f, err)
	}
	f, err = failuresAtAge(t.Context(), cfg, 2, 50<<12, 1000)
	if err != nil || f.empty < 0.99 {
		t.Errorf("ageing of keys long overwritten = %+v, %v; want nearly all empty", f, err)
	}
}
