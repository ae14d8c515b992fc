package claim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// Trials runs n independent trials on all cores and counts those that return
// true. Trial i gets its own randomness, derived from seed and i, so the count
// does not depend on the number of cores. The first error ends the count.
// Progress functions receive the share done, one call at a time.
func Trials(ctx context.Context, n int, seed uint64, trial func(rng *rand.Rand) (bool, error),
	progress ...func(done float64),
) (Rate, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var (
		workers sync.WaitGroup
		mu      sync.Mutex // guards what follows
		next    int
		ended   int
		rate    = Rate{Of: n}
	)
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n || ctx.Err() != nil {
					return
				}
				ok, err := trial(Rand(seed, uint64(i)))
				if err != nil {
					stop(fmt.Errorf("trial %d: %w", i, err))
					return
				}
				mu.Lock()
				if ok {
					rate.Hits++
				}
				ended++
				for _, report := range progress {
					report(float64(ended) / float64(n))
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return rate, context.Cause(ctx)
}

// Rand returns randomness for the i-th of many uses of one seed. Neighbouring
// numbers are scrambled first: generators seeded with them resemble each other.
func Rand(seed, i uint64) *rand.Rand {
	return rand.New(rand.NewPCG(scramble(seed), scramble(seed^scramble(i))))
}

// scramble is the finalizer of SplitMix64.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Rate is the number of trials that returned true.
type Rate struct{ Hits, Of int }

// Share returns the rate, 0 to 1.
func (r Rate) Share() float64 { return float64(r.Hits) / float64(max(r.Of, 1)) }

// Interval returns the Wilson interval, which contains the true rate with 95 %
// confidence.
func (r Rate) Interval() (low, high float64) {
	if r.Of == 0 {
		return 0, 1
	}
	const z = 1.96
	n, p := float64(r.Of), r.Share()
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(middle-half, 0), min(middle+half, 1)
}

// MissChance is the chance that fewer than the wanted share of n independent trials
// succeed, each with probability p.
func MissChance(n int, p, wanted float64) float64 {
	missed := 1.0
	term := math.Pow(p, float64(n)) // the chance of exactly i failures
	for i := 0; float64(n-i) >= wanted*float64(n); i++ {
		missed -= term
		term *= float64(n-i) / float64(i+1) * (1 - p) / p
	}
	return max(missed, 0)
}

func (r Rate) String() string {
	return fmt.Sprintf("%.4g %% (%d of %d)", 100*r.Share(), r.Hits, r.Of)
}
