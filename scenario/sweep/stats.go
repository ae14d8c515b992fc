package sweep

import (
	"math"
	"slices"
)

// Stat sums up one figure over runs.
type Stat struct {
	Figure string  `json:"figure"`
	Runs   int     `json:"runs"` // that have it
	Mean   float64 `json:"mean"`
	// HalfWidth is that of the 95 % confidence interval of the mean, by Student's t; 0
	// with one run, of which nothing can be said.
	HalfWidth float64 `json:"ci95_half_width"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
}

// newStat sums up values. There must be one at least.
func newStat(figure string, values []float64) Stat {
	s := Stat{Figure: figure, Runs: len(values), Min: slices.Min(values), Max: slices.Max(values)}
	n := float64(len(values))
	for _, v := range values {
		s.Mean += v / n
	}
	if len(values) < 2 {
		return s
	}
	var squares float64
	for _, v := range values {
		squares += (v - s.Mean) * (v - s.Mean)
	}
	s.HalfWidth = quantile975(len(values)-1) * math.Sqrt(squares/(n-1)/n)
	return s
}

// student are the 97.5 % quantiles of Student's t distribution with 1 to 30 degrees of
// freedom, as tables of statistics have them.
var student = [...]float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

// quantile975 is the quantile for degrees of freedom. Above the table it is the first
// terms of the expansion around the normal distribution's, exact to three digits.
func quantile975(degrees int) float64 {
	if degrees <= len(student) {
		return student[degrees-1]
	}
	const z = 1.959964
	n := float64(degrees)
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n)
}
