package flowradar

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/claim/claimtest"
)

// Every claim fails without what it is about.
func TestMutations(t *testing.T) {
	race.LeaveToPlainRun(t)
	claimtest.MutationsFail(t, Claims())
}

// A fast claim holds, gives the same result twice, and has a plot.
func TestQuickClaimsHold(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, c := range []claim.Claim{dleft} {
		var last claim.Result
		for i := range 2 {
			r, err := c.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Pass || len(r.Plots) == 0 || len(r.Tables) == 0 {
				t.Errorf("%s: measured %s, published %s; want it to pass, with a table and a plot", c.ID, r.Measured, c.Published)
			}
			if diff := cmp.Diff(last, r); i > 0 && diff != "" {
				t.Errorf("%s: the same seed gave another result (-first +second):\n%s", c.ID, diff)
			}
			last = r
		}
	}
}

// A loop and a black hole are each found where they are and nowhere else.
func TestOutagesAreFound(t *testing.T) {
	plan, err := flowset.Plan(500, 0.999, flowset.Single)
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range []paths.Kind{paths.Loop, paths.BlackHole} {
		f, err := runFault(claim.Rand(1, uint64(i)), plan.Geometry, kind, false)
		if err != nil || f.wrong > 0 || f.confirmed-f.firstPacket > 2*slotLength {
			t.Errorf("%v: %+v, error %v; want it confirmed within two slots of its first packet, and nothing found elsewhere", kind, f, err)
		}
	}
}
