// Package fairshare computes max-min fair rates: what flows get when each link is
// shared equally by the flows that it limits, as congestion control aims at. Paths
// come from the caller; routes are topo's.
package fairshare

import "container/heap"

// Rates returns the max-min fair rate of each flow. capacity is by link, links are
// those of each flow. A flow without links has no limit and gets limit.
//
// It fills progressively: the link that offers its flows the least share decides
// their rates, and so on with what is left.
func Rates(capacity []float64, links [][]int, limit float64) []float64 {
	rates := make([]float64, len(links))
	left := append([]float64(nil), capacity...)
	open := make([]int, len(capacity)) // flows without a rate
	flows := make([][]int, len(capacity))
	for f, list := range links {
		rates[f] = -1
		if len(list) == 0 {
			rates[f] = limit
		}
		for _, l := range list {
			open[l]++
			flows[l] = append(flows[l], f)
		}
	}
	var queue shares
	for l, n := range open {
		if n > 0 {
			queue = append(queue, share{left[l] / float64(n), l})
		}
	}
	heap.Init(&queue)
	for len(queue) > 0 {
		s := heap.Pop(&queue).(share)
		l := s.link
		if open[l] == 0 {
			continue
		}
		// Shares only grow as others are decided: an old one goes back.
		if now := left[l] / float64(open[l]); now > s.of {
			heap.Push(&queue, share{now, l})
			continue
		}
		for _, f := range flows[l] {
			if rates[f] >= 0 {
				continue
			}
			rates[f] = s.of
			for _, other := range links[f] {
				left[other] = max(0, left[other]-s.of)
				open[other]--
			}
		}
	}
	return rates
}

// share is what a link offers each of its open flows.
type share struct {
	of   float64
	link int
}

type shares []share

func (s shares) Len() int { return len(s) }
func (s shares) Less(i, j int) bool {
	return s[i].of < s[j].of || s[i].of == s[j].of && s[i].link < s[j].link
}
func (s shares) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *shares) Push(x any)   { *s = append(*s, x.(share)) }
func (s *shares) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
