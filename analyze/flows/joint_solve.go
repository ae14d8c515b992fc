package flows

import (
	"math"
	"slices"
)

// jointSolver solves the counts of flows that cross several switches as one
// system of equations: one unknown per flow instead of one per flow and switch.
type jointSolver struct {
	workers int
	systems []*system

	// By flow id: the guess of its count at every switch, and whether some
	// switch has it for certain.
	guess []float64
	have  []bool

	// smallDifferences says that counts of a flow differ by few units between
	// switches, as packets do and bytes do not.
	smallDifferences bool
}

// learnCount adopts a count that one switch has.
func (j *jointSolver) learnCount(id uint32, v uint64) {
	if !j.have[id] && v < 1<<53 {
		j.guess[id], j.have[id] = float64(v), true
	}
}

// addUnknown adds an unknown that is no flow's usual count, and returns its id.
func (j *jointSolver) addUnknown() uint32 {
	j.guess, j.have = append(j.guess, 0), append(j.have, false)
	return uint32(len(j.guess) - 1)
}

// solve guesses and refines until no further switch is solved.
func (j *jointSolver) solve() {
	for guesses := 0; guesses < maxGuesses; guesses++ {
		if guesses > 0 {
			j.distrustInconsistent()
		}
		j.leastSquares()
		if j.refineAll() {
			break
		}
		if guesses == 0 && j.smallDifferences {
			parallelFor(j.workers, len(j.systems), func(i int) {
				if s := j.systems[i]; !s.solved {
					s.solveByBelief(j.guess)
				}
			})
			if j.refineAll() {
				break
			}
		}
	}
	for id, v := range j.guess {
		j.guess[id] = math.Round(v)
	}
	parallelFor(j.workers, len(j.systems), func(i int) { j.systems[i].publish() })
}

// refineAll refines until no further switch is solved; what one has learnt may
// help others. It reports whether all are solved.
func (j *jointSolver) refineAll() bool {
	for {
		parallelFor(j.workers, len(j.systems), func(i int) {
			if s := j.systems[i]; !s.solved {
				s.refine(j.guess, j.have)
			}
		})
		progress, all := false, true
		for _, s := range j.systems {
			if !s.solved {
				all = false
				continue
			}
			for flow, id := range s.ids {
				if !j.have[id] {
					j.learnCount(id, s.values[flow])
					progress = true
				}
			}
		}
		if all || !progress {
			return all
		}
	}
}

// distrustInconsistent excludes the cells that this guess does not explain from
// the next one: most of them hold a flow that lost many packets, which distorts
// others. Flows whose count no switch has are guessed anew.
func (j *jointSolver) distrustInconsistent() {
	parallelFor(j.workers, len(j.systems), func(i int) {
		s := j.systems[i]
		if s.solved {
			return
		}
		image := make([]float64, len(s.left))
		s.addToCells(j.guess, image)
		for c, v := range image {
			s.trusted[c] = s.trusted[c] && math.Abs(float64(int64(s.left[c]))-v) < 0.75
		}
		clear(s.values)
	})
}

// Bounds of leastSquares. A guess need not be good: one flow in ten may be off
// by one. Where flows cross several switches, four or five rounds suffice; with
// the equations of one switch alone, hundreds may not.
const (
	goodGuess  = 1.5 // gradient per flow, as a root mean square
	maxRounds  = 100
	maxGuesses = 3
)

// leastSquares guesses the counts that no switch has, by conjugate gradients.
func (j *jointSolver) leastSquares() {
	free := j.upperBounds()
	if free == 0 {
		return
	}
	// rest is the residual of each cell, image the change of it by a step.
	rest, image := make([][]float64, len(j.systems)), make([][]float64, len(j.systems))
	parallelFor(j.workers, len(j.systems), func(i int) {
		s := j.systems[i]
		rest[i], image[i] = make([]float64, len(s.left)), make([]float64, len(s.left))
		for c, v := range s.left {
			rest[i][c] = float64(int64(v))
		}
		s.addToCells(j.guess, image[i])
		for c := range rest[i] {
			rest[i][c] -= image[i][c]
			if !s.trusted[c] {
				rest[i][c] = 0
			}
		}
	})
	gradient, step := make([]float64, len(j.guess)), make([]float64, len(j.guess))
	square := j.sumResiduals(rest, gradient)
	copy(step, gradient)
	best := square
	for round := 0; round < maxRounds && square > goodGuess*goodGuess*float64(free); round++ {
		lengths := make([]float64, len(j.systems))
		parallelFor(j.workers, len(j.systems), func(i int) {
			clear(image[i])
			s := j.systems[i]
			s.addToCells(step, image[i])
			for c, v := range image[i] {
				if s.trusted[c] {
					lengths[i] += v * v
				} else {
					image[i][c] = 0
				}
			}
		})
		length := 0.0
		for _, l := range lengths {
			length += l
		}
		if length == 0 {
			return
		}
		alpha := square / length
		for id, v := range step {
			j.guess[id] += alpha * v
		}
		parallelFor(j.workers, len(j.systems), func(i int) {
			for c, v := range image[i] {
				rest[i][c] -= alpha * v
			}
		})
		next := j.sumResiduals(rest, gradient)
		beta := next / square
		square = next
		for id, v := range gradient {
			step[id] = v + beta*step[id]
		}
		if square > 1e4*best { // it does not converge
			return
		}
		best = min(best, square)
	}
}

// upperBounds sets each guess to the flow's upper bound, if it counts the same
// everywhere: the least of its cells, less a packet for each of the other flows
// there. Most flows have some cell with small ones only, so this is close,
// whatever the sizes of the others. It returns the number of free flows: those
// in some core whose count no switch has.
func (j *jointSolver) upperBounds() (free int) {
	for id, have := range j.have {
		if !have {
			j.guess[id] = math.Inf(1)
		}
	}
	others := make([][]int32, len(j.systems))
	parallelFor(j.workers, len(j.systems), func(i int) {
		s := j.systems[i]
		others[i] = make([]int32, len(s.left))
		for _, c := range s.cells {
			others[i][c]++
		}
	})
	j.forEachFlow(func(i int, s *system, flow int) {
		id := s.ids[flow]
		if j.have[id] {
			return
		}
		for _, c := range s.cellsOf(uint32(flow)) {
			if s.trusted[c] {
				j.guess[id] = min(j.guess[id], float64(int64(s.left[c]))-float64(others[i][c]-1))
			}
		}
	})
	for id, v := range j.guess {
		if !j.have[id] && !math.IsInf(v, 1) {
			free++
		}
		if v < 1 || math.IsInf(v, 1) {
			j.guess[id] = 1
		}
	}
	return free
}

// addToCells adds each flow's value to its cells.
func (s *system) addToCells(values, cells []float64) {
	for flow, id := range s.ids {
		v := values[id]
		for _, c := range s.cellsOf(uint32(flow)) {
			cells[c] += v
		}
	}
}

// sumResiduals sums the residuals of each free flow's cells over all switches,
// and returns the sum of squares. The order of additions is fixed.
func (j *jointSolver) sumResiduals(rest [][]float64, sums []float64) (square float64) {
	clear(sums)
	j.forEachFlow(func(i int, s *system, flow int) {
		v := 0.0
		for _, c := range s.cellsOf(uint32(flow)) {
			v += rest[i][c]
		}
		sums[s.ids[flow]] += v
	})
	for id := range sums {
		if j.have[id] {
			sums[id] = 0
		}
		square += sums[id] * sums[id]
	}
	return square
}

// forEachFlow calls do for every flow of every system, in order for each flow
// id; the ids are divided among workers.
func (j *jointSolver) forEachFlow(do func(i int, s *system, flow int)) {
	n, w := uint64(len(j.guess)), uint64(j.workers)
	parallelFor(j.workers, j.workers, func(b int) {
		lo, hi := uint32(n*uint64(b)/w), uint32(n*uint64(b+1)/w)
		for i, s := range j.systems {
			from, _ := slices.BinarySearch(s.ids, lo)
			to, _ := slices.BinarySearch(s.ids, hi)
			for flow := from; flow < to; flow++ {
				do(i, s, flow)
			}
		}
	})
}
