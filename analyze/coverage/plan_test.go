package coverage

import (
	"math/rand/v2"
	"testing"
	"time"
)

// simulated returns the share of windows with a label that arrives, by a port that labels
// every t, of packets that come at random.
func simulated(w Wanted, t time.Duration) float64 {
	rng := rand.New(rand.NewPCG(1, 2))
	const windows = 200_000
	seen := make([]bool, windows)
	for now := 0.0; now < windows*float64(w.Window); {
		now += float64(t) + rng.ExpFloat64()*float64(w.Gap)
		if at := int(now / float64(w.Window)); at < windows && rng.Float64() >= w.Loss {
			seen[at] = true
		}
	}
	n := 0
	for _, s := range seen {
		if s {
			n++
		}
	}
	return float64(n) / windows
}

func TestPlanReachesItsCoverage(t *testing.T) {
	const ms = time.Millisecond
	for _, w := range []Wanted{
		{Coverage: 0.95, Window: 100 * ms, Gap: 4 * ms},
		{Coverage: 0.99, Window: 100 * ms, Gap: 4 * ms},
		{Coverage: 0.999, Window: 100 * ms, Gap: 10 * ms},
		{Coverage: 0.99, Window: 10 * ms, Gap: ms / 10},
		{Coverage: 0.99, Window: 100 * ms, Gap: ms, Loss: 0.1},
		{Coverage: 0.95, Window: 100 * ms, Gap: ms, Loss: 0.6},
	} {
		p, err := w.Plan()
		if err != nil {
			t.Fatalf("%+v: %v", w, err)
		}
		// Chance moves the share by less than 0.1 %.
		got, twice := simulated(w, p.Interval), simulated(w, 2*p.Interval)
		if got < w.Coverage-0.001 || twice >= w.Coverage && w.Loss == 0 || p.Patience < 1 {
			t.Errorf("%+v: %+v reaches %.4f, and twice the interval %.4f; want it to be enough, and twice not", w, p, got, twice)
		}
	}
	for _, w := range []Wanted{
		{Coverage: 0.99, Window: 10 * ms, Gap: 10 * ms}, // too few packets
		{Coverage: 1, Window: ms, Gap: ms},
		{Coverage: 0.5, Window: ms, Gap: ms, Loss: 1},
		{Coverage: 0.5, Window: ms},
	} {
		if p, err := w.Plan(); err == nil {
			t.Errorf("%+v: %+v; want an error", w, p)
		}
	}
}
