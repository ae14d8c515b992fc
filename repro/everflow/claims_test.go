package everflow

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/claim/claimtest"
)

// Every claim fails without what it is about.
func TestMutations(t *testing.T) {
	race.LeaveToPlainRun(t)
	claimtest.MutationsFail(t, Claims())
}

// Claims that take little time hold, give the same result twice, and have a table
// and a plot.
func TestClaims(t *testing.T) {
	for _, c := range []claim.Claim{inner, everyFlow} {
		var last claim.Result
		for i := range 2 {
			r, err := c.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Pass || len(r.Plots) == 0 || len(r.Tables) == 0 {
				t.Errorf("%s: measured %s, published %s, pass %v; want it to pass, with a table and a plot", c.ID, r.Measured, c.Published, r.Pass)
			}
			if diff := cmp.Diff(last, r); i > 0 && diff != "" {
				t.Errorf("%s: the same seed gave another result (-first +second):\n%s", c.ID, diff)
			}
			last = r
		}
	}
}

// The lab finds nothing in a healthy fabric and something in a faulty one.
func TestLabJudges(t *testing.T) {
	for _, tr := range []faultCase{troubles[0], troubles[2]} {
		hit, named, others, err := runFaultCase(t.Context(), tr, faultRun{flows: 60, seed: 5, loss: 0.1, upper: true})
		if err != nil {
			t.Fatal(err)
		}
		if broken := tr.make != nil; hit != broken || named != broken || others > 0 {
			t.Errorf("%s: met %v, named %v, %d other findings", tr.name, hit, named, others)
		}
	}
}

// Probes distinguish the four kinds of packet loss.
func TestProbesTell(t *testing.T) {
	for _, kind := range droppedBy {
		got, at, err := probeDrops(t.Context(), kind, 0, 40, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got.Kind != kind.want || kind.want.String() != "passed" && got.At.Switch != at {
			t.Errorf("%s: %v at %+v; want %v at %d", kind.name, got.Kind, got.At, kind.want, at)
		}
	}
}

// An analyzer that fails takes no trace with it, and leaves no part of one.
func TestFailoverSplitsNothing(t *testing.T) {
	race.LeaveToPlainRun(t)
	for seed := range uint64(2) {
		r, err := failover.Run(t.Context(), claim.Options{Seed: seed, Quick: true})
		if err != nil || !r.Pass {
			t.Errorf("seed %d: measured %s, %v; want it to pass", seed, r.Measured, err)
		}
	}
}
