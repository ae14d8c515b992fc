package prove

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

// What is injected is diagnosed and rebuilt, and the table has every cause.
func TestClaim(t *testing.T) {
	race.LeaveToPlainRun(t)
	r, err := verdicts.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Pass || len(r.Tables) != 1 || len(r.Tables[0].Rows) != int(kinds) {
		t.Errorf("measured %s, pass %v, tables %v; want it to pass, with a row for each cause", r.Measured, r.Pass, r.Tables)
	}
}

// What is injected is found and rebuilt, and the table has every cause.
func TestDeliveryClaim(t *testing.T) {
	race.LeaveToPlainRun(t)
	r, err := deliveredVerdicts.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Pass || len(r.Tables) != 1 || len(r.Tables[0].Rows) != int(losts) {
		t.Errorf("measured %s, pass %v, tables %v; want it to pass, with a row for each cause", r.Measured, r.Pass, r.Tables)
	}
}
