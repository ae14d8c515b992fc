package coverage

import (
	"sort"

	"github.com/weft-telemetry/weft/model"
)

// history is a port's samples by label time: a ring, so that the usual label, which is
// newer than all others, costs no search and moves nothing. It grows with what arrives,
// up to its limit.
type history struct {
	ring  []Sample
	first int // index of the oldest
	n     int
}

// at returns the sample at a position, the oldest at 0.
func (h *history) at(i int) *Sample {
	if i += h.first; i >= len(h.ring) {
		i -= len(h.ring)
	}
	return &h.ring[i]
}

// search returns the position of the first sample at a time or after it.
func (h *history) search(t model.Time) int {
	return sort.Search(h.n, func(i int) bool { return h.at(i).Time >= t })
}

// insert inserts a sample by label time and reports whether it is new. A full
// history drops its oldest, which may be the sample itself.
func (h *history) insert(s *Sample, limit int) bool {
	at := h.n
	if h.n > 0 && h.at(h.n-1).Time >= s.Time {
		if at = h.search(s.Time); h.at(at).Time == s.Time {
			return false
		}
	}
	if h.n == limit {
		if at == 0 {
			return true
		}
		// The oldest's place is free: those before the sample need not move, as they
		// are counted from the next.
		if h.first++; h.first == len(h.ring) {
			h.first = 0
		}
		h.n--
		at--
	}
	if h.n == len(h.ring) {
		h.grow(limit)
	}
	// Those move that are the fewer: in general the newer ones, if any.
	h.n++
	if at < h.n/2 {
		if h.first--; h.first < 0 {
			h.first = len(h.ring) - 1
		}
		for i := range at {
			*h.at(i) = *h.at(i + 1)
		}
	} else {
		for i := h.n - 1; i > at; i-- {
			*h.at(i) = *h.at(i - 1)
		}
	}
	*h.at(at) = *s
	return true
}

// grow makes room for more samples, never for more than the limit.
func (h *history) grow(limit int) {
	ring := make([]Sample, min(2*h.n+16, limit))
	n := copy(ring, h.ring[h.first:])
	copy(ring[n:], h.ring[:h.first])
	h.ring, h.first = ring, 0
}

// between returns the samples from one time to another, both included. They belong to
// h where they lie in one piece.
func (h *history) between(from, to model.Time) []Sample {
	i := h.search(from)
	j := i
	for j < h.n && h.at(j).Time <= to {
		j++
	}
	if i == j {
		return nil
	}
	lo, hi := h.first+i, h.first+j
	switch {
	case lo >= len(h.ring):
		return h.ring[lo-len(h.ring) : hi-len(h.ring)]
	case hi <= len(h.ring):
		return h.ring[lo:hi]
	}
	out := make([]Sample, 0, j-i)
	out = append(out, h.ring[lo:]...)
	return append(out, h.ring[:hi-len(h.ring)]...)
}
