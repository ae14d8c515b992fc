package audit

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

// Lies are named, and a fault of the fabric is none.
func TestClaim(t *testing.T) {
	race.LeaveToPlainRun(t)
	r, err := lies.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Pass || len(r.Tables) != 1 {
		t.Errorf("measured %s, pass %v, tables %v; want it to pass", r.Measured, r.Pass, r.Tables)
	}
}
