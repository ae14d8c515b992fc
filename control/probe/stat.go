package probe

import "math"

// Interval is a measured share and its 95 % confidence interval (Clopper and
// Pearson).
type Interval struct {
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

const confidence = 0.95

// intervalOf is for k of n.
func intervalOf(k, n uint64) Interval {
	if n == 0 {
		return Interval{High: 1}
	}
	side := (1 - confidence) / 2
	iv := Interval{Share: float64(k) / float64(n), High: 1}
	if k > 0 {
		iv.Low = bisect(func(p float64) bool { return atLeast(k, n, p) < side })
	}
	if k < n {
		iv.High = bisect(func(p float64) bool { return 1-atLeast(k+1, n, p) > side })
	}
	return iv
}

// bisect returns the largest share for which a property of small shares holds.
func bisect(holds func(p float64) bool) float64 {
	low, high := 0.0, 1.0
	for range 50 {
		if mid := (low + high) / 2; holds(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// atLeast is the probability of k or more of n, each with probability p.
func atLeast(k, n uint64, p float64) float64 {
	switch {
	case k == 0:
		return 1
	case k > n || p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	// From the largest term on, in both directions, terms shrink.
	sum := 0.0
	lp, lq := math.Log(p), math.Log1p(-p)
	all, _ := math.Lgamma(float64(n) + 1)
	for i := k; i <= n; i++ {
		a, _ := math.Lgamma(float64(i) + 1)
		b, _ := math.Lgamma(float64(n-i) + 1)
		term := math.Exp(all - a - b + float64(i)*lp + float64(n-i)*lq)
		sum += term
		if float64(i) > float64(n)*p && term < sum*1e-15 {
			break
		}
	}
	return min(sum, 1)
}

// homogeneity is the probability that the patterns' shares differ as much as they do,
// or more, if all have the same loss rate (Pearson's chi-squared test).
func homogeneity(patterns []Pattern) float64 {
	var n, lost float64
	groups := 0
	for i := range patterns {
		if patterns[i].Reached > 0 {
			n += float64(patterns[i].Reached)
			lost += float64(patterns[i].Lost)
			groups++
		}
	}
	if groups < 2 || lost == 0 || lost == n {
		return 1
	}
	p, sum := lost/n, 0.0
	for i := range patterns {
		if k := float64(patterns[i].Reached); k > 0 {
			d := float64(patterns[i].Lost) - k*p
			sum += d * d / (k * p * (1 - p))
		}
	}
	return upperGamma(float64(groups-1)/2, sum/2)
}

// upperGamma is the regularized incomplete gamma function Q(a, x): by its series
// below a+1, by its continued fraction above.
func upperGamma(a, x float64) float64 {
	if x <= 0 {
		return 1
	}
	lg, _ := math.Lgamma(a)
	scale := math.Exp(a*math.Log(x) - x - lg)
	if x < a+1 {
		term := 1 / a
		sum := term
		for k := a + 1; term > sum*1e-16; k++ {
			term *= x / k
			sum += term
		}
		return 1 - scale*sum
	}
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	h := d
	for i := 1.0; i < 1000; i++ {
		an := -i * (i - a)
		b += 2
		d = 1 / max(an*d+b, tiny)
		c = b + an/c
		step := d * c
		h *= step
		if math.Abs(step-1) < 1e-15 {
			break
		}
	}
	return scale * h
}
