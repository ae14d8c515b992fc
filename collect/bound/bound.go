// Package bound computes failure probabilities of answers from memory whose slots
// are overwritten by later keys: the formulas of the paper's analysis, at a given
// load. Package region counts the load.
// Origin: docs/papers.md#dta (formulas (1) to (4) and (9) to (12)).
package bound

import "math"

// Bound holds upper bounds of the probabilities that an answer fails.
type Bound struct {
	Empty float64 `json:"empty"` // no answer for a key that was written
	Wrong float64 `json:"wrong"` // an answer that was never written under the key
}

// Load is the number of slots written since a key, divided by the slots of the
// memory: the paper's α times N, without the assumption that all reports have the
// same N. All writes since the reset are an upper bound of it.
type Load float64

// overwritten is the probability that a given slot was written since.
func (l Load) overwritten() float64 { return -math.Expm1(-float64(l)) }

// KnownCopies bounds the failure of a key with n copies, when the slot of another
// key matches with probability match: 2^-b for Key-Write with a checksum of b
// bits, ((|V|+1)·2^-b)^B for Postcarding. Then Empty is (1)+(2)+(3), or
// (9)+(10)+(11), and Wrong is (4) or (12). (The main text's (5) to (8) lack a
// pair of brackets around |V|+1.)
func KnownCopies(l Load, n int, match float64) Bound {
	p := l.overwritten()
	pn := math.Pow(p, float64(n))
	// Numerator of (1)+(2): all copies are overwritten and none of their slots
	// matches, or two and more do. That is all but exactly one match.
	none := math.Pow(1-match, float64(n))
	one := float64(n) * match * math.Pow(1-match, float64(n-1))
	empty := pn * (none + max(0, -math.Expm1(float64(n)*math.Log1p(-match))-one))
	for j := 1; j < n; j++ { // (3): some are overwritten, and one of their slots matches
		empty += choose(n, j) * math.Pow(p, float64(j)) * math.Exp(-float64(l)*float64(n-j)) *
			-math.Expm1(float64(j)*math.Log1p(-match))
	}
	return Bound{Empty: min(1, empty), Wrong: min(1, pn*float64(n)*match)}
}

// WithConsensus is KnownCopies when an answer needs at least t equal copies: Empty
// grows by the probability that fewer survive.
func WithConsensus(l Load, n, t int, match float64) Bound {
	b := KnownCopies(l, n, match)
	p := l.overwritten()
	for left := 1; left < t && left <= n; left++ {
		b.Empty += choose(n, left) * math.Pow(p, float64(n-left)) * math.Exp(-float64(l)*float64(left))
	}
	if t > n {
		b.Empty = 1
	}
	b.Empty = min(1, b.Empty)
	return b
}

// UnknownCopies is KnownCopies for a key that has at least one copy, when n slots
// are read because the number of its copies is unknown.
func UnknownCopies(l Load, n int, match float64) Bound {
	p := l.overwritten()
	b := KnownCopies(l, n, match)
	// The slots without a copy hold other keys or nothing: they cannot save the
	// answer, but they can spoil it.
	others := -math.Expm1(float64(n) * math.Log1p(-match))
	return Bound{Empty: min(1, max(b.Empty, p+others)), Wrong: min(1, p*float64(n)*match)}
}

func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}
