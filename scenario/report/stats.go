package report

import "slices"

// percentileRule is the definition of percentiles in every output.
const percentileRule = "nearest rank: the smallest value that at least p % of the flows do not exceed"

// percentile returns the nearest-rank percentile of ascending values, zero for
// none. It takes permille and counts in whole numbers: in floats 0.07 × 100 is
// above 7, which would select the eighth value.
func percentile(sorted []float64, permille int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*permille + 999) / 1000
	return sorted[max(rank, 1)-1]
}

// Stats describes the slowdowns of some flows.
type Stats struct {
	Flows int     `json:"flows"` // finished, with a known ideal
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// statsOf sorts its argument. Summing in ascending order makes the mean
// independent of the flows' order.
func statsOf(values []float64) Stats {
	if len(values) == 0 {
		return Stats{}
	}
	slices.Sort(values)
	var sum float64
	for _, v := range values {
		sum += v
	}
	return Stats{
		Flows: len(values),
		Mean:  sum / float64(len(values)),
		P50:   percentile(values, 500),
		P95:   percentile(values, 950),
		P99:   percentile(values, 990),
		Max:   values[len(values)-1],
	}
}
