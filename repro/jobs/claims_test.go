package jobs

import (
	"testing"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/claim/claimtest"
)

// Every claim fails without what it is about.
func TestMutations(t *testing.T) {
	race.LeaveToPlainRun(t)
	claimtest.MutationsFail(t, Claims())
}

func TestClaims(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, c := range Claims() {
		r, err := c.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Pass {
			t.Errorf("%s: measured %s; want it to pass\n%v", c.ID, r.Measured, r.Notes)
		}
	}
}
