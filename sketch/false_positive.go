package sketch

import (
	"math"
	"sync"
)

// FalsePositive returns the probability that the filter takes a new flow for a
// known one after a number of others were added.
//
// The paper's (1-e^(-k n/m))^k holds for independent bits. Here a word has had a
// Poisson number of groups, each of GroupBits different bits, and all of a
// flow's groups must find their bits set.
func (g Geometry) FalsePositive(flows float64) float64 {
	groups := float64(g.FilterHashes / GroupBits)
	perWord := flows * groups / float64(g.FilterBits/64)
	if perWord <= 0 {
		return 0
	}
	hit, p := 0.0, math.Exp(-perWord)
	for n, covered := range coverage() {
		if n > 0 {
			p *= perWord / float64(n)
		}
		hit += p * covered
		if p < 1e-20 && float64(n) > perWord {
			break
		}
	}
	return math.Pow(hit, groups)
}

// NoFalsePositive returns the probability that every one of this many flows is
// taken for new at its first packet: the product of the complements, whose
// logarithm is integrated.
func (g Geometry) NoFalsePositive(flows int) float64 {
	const steps = 64 // the integrand is smooth: more change nothing in 12 digits
	sum := 0.0
	for i := range steps {
		sum += math.Log1p(-g.FalsePositive(float64(flows) * (float64(i) + 0.5) / steps))
	}
	return math.Exp(sum * float64(flows) / steps)
}

// coverage returns, by number of groups that a word has had, the probability
// that another group finds all its bits set.
var coverage = sync.OnceValue(func() []float64 {
	// Words of a filter that is any use have seen 20 groups or fewer; the
	// probability of 200 is negligible, and the result there is 1.
	const most = 200
	set := [65]float64{1} // distribution of the number of bits that are set
	out := make([]float64, 0, most)
	for range most {
		all := 0.0
		for have, p := range set {
			all += p * choose(have, GroupBits) / choose(64, GroupBits)
		}
		out = append(out, all)
		var next [65]float64
		for have, p := range set {
			for fresh := 0; fresh <= GroupBits && have+fresh <= 64; fresh++ {
				next[have+fresh] += p * choose(64-have, fresh) * choose(have, GroupBits-fresh) / choose(64, GroupBits)
			}
		}
		set = next
	}
	return out
})

func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c *= float64(n-i) / float64(k-i)
	}
	return c
}
