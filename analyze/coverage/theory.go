package coverage

import (
	"math"
	"time"
)

// HopDistribution returns the distribution of the number of switches between two
// different hosts of a k-ary fat-tree, chosen at random: index 1, 3 and 5.
func HopDistribution(k int) (p [6]float64) {
	half, hosts := float64(k)/2, float64(k)*float64(k)*float64(k)/4
	p[1] = (half - 1) / (hosts - 1)
	p[3] = (half - 1) * half / (hosts - 1)
	p[5] = float64(k-1) * half * half / (hosts - 1)
	return p
}

// BaseA returns the distribution of the number of labels on a packet, under
// interval labelling: each switch labels with probability r = Ts/T, independently
// of the others.
func BaseA(k int, r float64) (p [6]float64) {
	return BaseB(k, r, func(int) float64 { return 0 })
}

// BaseB is BaseA under labelling by interval and by the number of labels: with i
// labels a switch labels by number with probability f(i), by interval with
// g(f(i)) = r·(1 - f(i)); the two exclude each other. (The paper requires of g
// only that it fall from r to 0; this is the simplest such function, and the one
// that its published calculation uses.)
func BaseB(k int, r float64, f func(labels int) float64) (p [6]float64) {
	hops := HopDistribution(k)
	var w [6]float64 // by labels, after n hops
	w[0] = 1
	for n := 1; n <= 5; n++ {
		var next [6]float64
		for i, have := range w {
			labelled := f(i) + r*(1-f(i))
			next[i] += have * (1 - labelled)
			if i < 5 {
				next[i+1] += have * labelled
			}
		}
		w = next
		for i := range p {
			p[i] += hops[n] * w[i]
		}
	}
	return p
}

// Mean returns the expectation of a distribution over 0, 1, 2 …
func Mean(p [6]float64) (m float64) {
	for i, x := range p {
		m += float64(i) * x
	}
	return m
}

// CoverageProbability returns the probability that a port is labelled again within
// ti (section 4.2): its labels are t apart, the wait for a packet to carry one is
// tp, and delays to the collector are normal with standard deviation sigma.
func CoverageProbability(t, tp, ti, sigma time.Duration) float64 {
	if sigma == 0 {
		if t+tp <= ti {
			return 1
		}
		return 0
	}
	return 0.5 * math.Erfc(float64(t+tp-ti)/(2*float64(sigma)))
}
