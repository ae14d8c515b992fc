package flows

import (
	"math/bits"
	"slices"
)

// smallCore is the number of flows up to which independence is computed: the
// time grows with the third power. Above, it is inferred.
const smallCore = 200

// coreSlack is how many more equations than unknowns a large core must have.
// Cells are drawn at random, by a seed that traffic does not know. Such
// equations are independent with a probability that rises steeply once there are
// more of them than unknowns, up to small patterns: two cells of a core with
// the same two flows (a handful in any table; each costs an equation, hence the
// slack), or two flows with the same cells, which shareAllCells finds.
const coreSlack = 8

// independent reports whether the equations of the cells in the set determine the
// counts of flows, given all others.
func independent(e *equations, flows []uint32, in []bool) bool {
	number := make([]int32, len(in)) // of the cells in use, from 1
	rows := 0
	for _, f := range flows {
		for _, c := range e.cellsOf(f) {
			if in[c] && number[c] == 0 {
				rows++
				number[c] = int32(rows)
			}
		}
	}
	if len(flows) <= smallCore {
		return fullRank(e, flows, number, rows)
	}
	return rows >= len(flows)+coreSlack && !shareAllCells(e, flows)
}

// shareAllCells reports whether two flows share all cells, or may do so.
func shareAllCells(e *equations, flows []uint32) bool {
	size := 1 << bits.Len(uint(2*len(flows)))
	marks := make([]uint64, size)
	for _, f := range flows {
		mark := uint64(1)
		for _, c := range e.cellsOf(f) {
			mark = mark*0x9e3779b97f4a7c15 + uint64(c)
			mark ^= mark >> 29
		}
		i := mark & uint64(size-1)
		for ; marks[i] != 0; i = (i + 1) & uint64(size-1) {
			if marks[i] == mark {
				return true
			}
		}
		marks[i] = mark
	}
	return false
}

// prime is the order of the field in which ranks are computed. Independence
// modulo a prime implies independence over the integers.
const prime = 1<<31 - 1

// fullRank reports whether no flow's cells are a linear combination of those of
// others, by elimination.
func fullRank(e *equations, flows []uint32, number []int32, cells int) bool {
	if cells < len(flows) {
		return false
	}
	rows := make([][]uint64, len(flows)) // one per flow
	for i, f := range flows {
		rows[i] = make([]uint64, cells)
		for _, c := range e.cellsOf(f) {
			if number[c] > 0 {
				rows[i][number[c]-1] = 1
			}
		}
	}
	for i, row := range rows {
		pivot := slices.IndexFunc(row, func(v uint64) bool { return v != 0 })
		if pivot < 0 {
			return false
		}
		inverse := powMod(row[pivot], prime-2)
		for _, other := range rows[i+1:] {
			if other[pivot] == 0 {
				continue
			}
			factor := prime - other[pivot]*inverse%prime
			for c := pivot; c < cells; c++ {
				if row[c] != 0 {
					other[c] = (other[c] + factor*row[c]) % prime
				}
			}
		}
	}
	return true
}

// powMod returns b to the n modulo prime.
func powMod(b, n uint64) uint64 {
	v := uint64(1)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			v = v * b % prime
		}
		b = b * b % prime
	}
	return v
}
