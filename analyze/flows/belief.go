package flows

import (
	"math"
	"slices"

	"github.com/weft-telemetry/weft/sketch"
)

// Bounds of belief propagation. Differences of packets in flight are small; larger
// ones are found by flip before and after.
const (
	maxDifference = 2  // of a flow's count from its guess, in one run
	beliefRounds  = 60 // of messages between flows and cells
	beliefRuns    = 4  // on what earlier ones have left
	beliefLook    = 6  // rounds after which beliefs are tried as a solution
	roundingNoise = 1e-3
)

// belief is what is expected of a flow's difference from its guess, without one of its
// cells: by the prior and the flow's other cells.
type belief struct{ mean, variance float64 }

// solveByBelief solves a core whose flows differ from their guesses too often for
// refine, switch by switch.
//
// Paper: an iterative solver for one switch's equations, started with the
// counters of neighbours. At 126.8K flows on 130K cells these have few more equations
// than unknowns, and a solver over the reals does not converge. Here it knows that
// differences are integers, and mostly zero: cells and flows exchange
// beliefs, a flow's differences as a distribution over -maxDifference to maxDifference, a cell's
// other flows as a normal one. As in refine, only the cells decide whether the
// result is a solution.
func (s *system) solveByBelief(guess []float64) {
	if !s.determined() {
		return
	}
	for flow, id := range s.ids {
		s.values[flow] = uint64(int64(math.Round(max(0, guess[id]))))
	}
	best := slices.Clone(s.values)
	rest := s.residuals()
	uneven := s.nonzeroCells(rest)
	for range beliefRuns {
		s.propagate(rest)
		s.search(rest)
		now := s.nonzeroCells(rest)
		if s.solved || now >= uneven {
			break
		}
		uneven = now
		copy(best, s.values)
	}
	if !s.solved {
		copy(s.values, best)
	}
}

// determined reports whether there are as many equations as unknowns.
func (s *system) determined() bool {
	used, equations := make([]bool, len(s.left)), 0
	for _, c := range s.cells {
		if s.usable[c] && !used[c] {
			used[c] = true
			equations++
		}
	}
	return equations >= s.flows()
}

// propagate changes the values by the most probable differences.
func (s *system) propagate(rest []uint64) {
	prior := differencePrior(s.variance(rest))
	edges := make([]belief, len(s.cells))
	for i := range edges {
		edges[i] = belief{0, prior.variance}
	}
	sums := make([]belief, len(rest))
	differences := make([]int8, s.flows())
	trial := make([]uint64, len(rest))
	fewest := s.nonzeroCells(rest)
	chosen := make([]int8, s.flows())
	stale := 0
	for round := 1; round <= beliefRounds; round++ {
		clear(sums)
		for e, c := range s.cells {
			sums[c].mean += edges[e].mean
			sums[c].variance += edges[e].variance
		}
		for flow := range differences {
			differences[flow] = s.updateFlow(flow, &prior, rest, sums, edges)
		}
		if round%beliefLook != 0 {
			continue
		}
		copy(trial, rest)
		s.subtractDifferences(differences, trial)
		n := s.nonzeroCells(trial)
		if n >= fewest {
			if stale++; stale == 3 {
				break
			}
			continue
		}
		stale, fewest = 0, n
		copy(chosen, differences)
		if n == 0 {
			break
		}
	}
	s.subtractDifferences(chosen, rest)
	for flow, d := range chosen {
		s.values[flow] += uint64(int64(d))
	}
}

// updateFlow recomputes the beliefs of a flow for each of its cells, and returns
// its most probable difference.
func (s *system) updateFlow(flow int, prior *differences, rest []uint64, sums, edges []belief) int8 {
	const values = 2*maxDifference + 1
	all := prior.log
	first := flow * s.tables
	var message [sketch.MaxTables][values]float64
	for t := range s.tables {
		e := first + t
		c := s.cells[e]
		if !s.usable[c] {
			continue
		}
		mean := float64(int64(rest[c])) - (sums[c].mean - edges[e].mean)
		half := -0.5 / (max(sums[c].variance-edges[e].variance, 0) + roundingNoise)
		for i := range values {
			off := mean - float64(i-maxDifference)
			message[t][i] = off * off * half
			all[i] += message[t][i]
		}
	}
	for t := range s.tables {
		var log [values]float64
		for i := range values {
			log[i] = all[i] - message[t][i]
		}
		b := &edges[first+t]
		next := moments(&log)
		b.mean, b.variance = (b.mean+next.mean)/2, (b.variance+next.variance)/2
	}
	best := 0
	for i := range values {
		if all[i] > all[best] {
			best = i
		}
	}
	return int8(best - maxDifference)
}

// moments returns mean and variance of a distribution given by logarithms.
func moments(log *[2*maxDifference + 1]float64) belief {
	top := log[0]
	for _, v := range log[1:] {
		top = max(top, v)
	}
	var sum, first, second float64
	for i, v := range log {
		if v -= top; v < -30 {
			continue
		}
		p, d := math.Exp(v), float64(i-maxDifference)
		sum += p
		first += p * d
		second += p * d * d
	}
	mean := first / sum
	return belief{mean, second/sum - mean*mean}
}

// differences is a distribution of differences, geometric on both sides of zero.
type differences struct {
	log      [2*maxDifference + 1]float64
	variance float64
}

func differencePrior(variance float64) (d differences) {
	// ρ of the variance 2ρ/(1-ρ)².
	v := min(max(variance, 1e-3), 4)
	rho := 1 + 1/v - math.Sqrt(2/v+1/(v*v))
	for i := range d.log {
		d.log[i] = math.Abs(float64(i-maxDifference)) * math.Log(rho)
	}
	d.variance = moments(&d.log).variance
	return d
}

// variance returns the variance of a flow's difference that the residuals of cells
// suggest. Few large ones, of flows that lost many packets, do not count.
func (s *system) variance(rest []uint64) float64 {
	members := make([]uint8, len(rest))
	for _, c := range s.cells {
		members[c] = uint8(min(int(members[c])+1, 255))
	}
	squares, flows := 0.0, 0
	for c, n := range members {
		v := math.Abs(float64(int64(rest[c])))
		if n == 0 || !s.usable[c] || v > 4*maxDifference {
			continue
		}
		squares += v * v
		flows += int(n)
	}
	return squares / float64(max(flows, 1))
}

// subtractDifferences removes differences from the residuals of cells.
func (s *system) subtractDifferences(differences []int8, rest []uint64) {
	for flow, d := range differences {
		if d == 0 {
			continue
		}
		for _, c := range s.cellsOf(uint32(flow)) {
			if s.usable[c] {
				rest[c] -= uint64(int64(d))
			}
		}
	}
}
