package trace

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDistinct(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 10, 300, 5000, 200000} {
		var a, b Distinct
		for i := range n {
			h := rng.Uint64()
			a.Add(h)
			a.Add(h)
			if i%2 == 0 {
				b.Add(h)
			}
		}
		b.Merge(&a)
		if got := b.Count(); math.Abs(got-float64(n)) > 0.2*float64(n) || b != a {
			t.Errorf("%d flows are counted as %.1f", n, got)
		}
	}
}
