package sim

import (
	"math"
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

// The claims hold with seeds that no one has looked at.
func TestClaims(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, c := range Claims() {
		r, err := c.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Pass || len(r.Tables) != 1 || len(r.Plots) != 1 {
			t.Errorf("%s: measured %s, pass %v, tables %v; want it to pass", c.ID, r.Measured, r.Pass, r.Tables)
		}
	}
}

// The distribution of M/D/1 has the mean of Pollaczek and Khinchine, and begins with the
// share of packets that find the queue empty.
func TestMD1HasItsMean(t *testing.T) {
	for _, load := range []float64{0.3, 0.6, 0.8} {
		if got := md1(load, 0); math.Abs(got-(1-load)) > 1e-12 {
			t.Errorf("load %v: %v do not wait; want %v", load, got, 1-load)
		}
		mean := 0.0
		const step = 1. / 1000
		for x := step / 2; x < longestWait; x += step {
			mean += (1 - md1(load, x)) * step
		}
		want := load / (2 * (1 - load))
		if math.Abs(mean-want) > 0.01*want {
			t.Errorf("load %v: the mean of the distribution is %v; want %v", load, mean, want)
		}
	}
}
