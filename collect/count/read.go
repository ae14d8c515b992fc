package count

import (
	"math"

	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
)

// Answer is the result of a query for a key.
type Answer struct {
	Sum   uint64 // the key's sum, or more
	Bound Bound
}

// Bound is the bound on the overestimate of a sum, as long as nothing is
// subtracted.
type Bound struct {
	Mean    float64 `json:"mean"`    // average sum of other keys in a cell; the minimum of several has less
	Excess  float64 `json:"excess"`  // the sum exceeds the true one by more than this
	Failing float64 `json:"failing"` // with at most this probability
}

// errorBound is that of a count-min sketch: a cell holds Mean of other keys' sums
// on average, so more than e times that with a probability of at most 1/e, and
// all n cells with e^-n.
func errorBound(total float64, cells uint64, n int) Bound {
	mean := total / float64(cells)
	return Bound{Mean: mean, Excess: math.E * mean, Failing: math.Exp(-float64(n))}
}

// Read returns the minimum of the key's first copies cells. Copies must be the
// redundancy of the reports: a cell that some did not add to is too small.
func (t *Table) Read(key []byte, copies int) (Answer, error) { return ReadSum(key, copies, t) }

// ReadSum reads several tables of one geometry as if they were one.
func ReadSum(key []byte, copies int, tables ...*Table) (Answer, error) {
	if copies < 1 || copies > slothash.MaxCopies {
		return Answer{}, ErrCopies
	}
	var sums [slothash.MaxCopies]uint64
	var total float64
	var cells uint64
	for _, t := range tables {
		p, err := t.HashKey(key)
		if err != nil {
			return Answer{}, err
		}
		for n := range copies {
			sums[n] += region.Load(&t.cells[t.cell(p, n)])
		}
		total += float64(t.mem.Counts().Total)
		cells = t.cfg.Cells
	}
	a := Answer{Sum: sums[0], Bound: errorBound(total, max(1, cells), copies)}
	for _, s := range sums[1:copies] {
		a.Sum = min(a.Sum, s)
	}
	return a, nil
}
