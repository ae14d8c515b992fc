package report

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// keepExtremes downsamples for a plot of cols columns between two instants: in
// each column it keeps the shallowest and the deepest queue, in time order. A
// line through them fills the same pixels as a line through all, so no peak is
// lost. A series that is short enough stays whole. The result has at most 2 ×
// cols samples and may share memory with in.
func keepExtremes(in []Sample, from, to model.Time, cols int) []Sample {
	if len(in) <= 2*cols {
		return in
	}
	out := make([]Sample, 0, 2*cols)
	for len(in) > 0 {
		col := columnOf(in[0].At, from, to, cols)
		low, high, n := 0, 0, 1
		for n < len(in) && columnOf(in[n].At, from, to, cols) == col {
			if in[n].Queue < in[low].Queue {
				low = n
			}
			if in[n].Queue > in[high].Queue {
				high = n
			}
			n++
		}
		out = append(out, in[min(low, high)])
		if low != high {
			out = append(out, in[max(low, high)])
		}
		in = in[n:]
	}
	return out
}

// columnOf returns the column of an instant; those outside are in the outer
// columns.
func columnOf(t, from, to model.Time, cols int) int {
	if to <= from {
		return 0
	}
	share := float64(t-from) / float64(to-from)
	return min(max(int(share*float64(cols)), 0), cols-1)
}

// columnShares returns how much of each column the intervals cover, 0 to 1. The
// intervals are disjoint and by time.
func columnShares(spans []span, from, to model.Time, cols int) []float64 {
	out := make([]float64, cols)
	if to <= from {
		return out
	}
	width := float64(to-from) / float64(cols)
	for _, s := range spans {
		a, b := float64(max(s.from, from)-from)/width, float64(min(s.to, to)-from)/width
		for c := int(a); c < cols && float64(c) < b; c++ {
			out[c] = min(out[c]+min(b, float64(c+1))-max(a, float64(c)), 1)
		}
	}
	return out
}

// maximum returns the largest number of intervals open at once in each column.
func maximum(spans []span, from, to model.Time, cols int) []int {
	type edge struct {
		at   model.Time
		step int
	}
	edges := make([]edge, 0, 2*len(spans))
	for _, s := range spans {
		edges = append(edges, edge{s.from, 1}, edge{s.to, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	out := make([]int, cols)
	open, since := 0, from
	for _, e := range edges {
		if e.at > since { // the count was valid in [since, e.at)
			for c := columnOf(since, from, to, cols); c <= columnOf(e.at-1, from, to, cols); c++ {
				out[c] = max(out[c], open)
			}
			since = e.at
		}
		open += e.step
	}
	return out
}
