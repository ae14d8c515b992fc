package peer

import (
	"math"
	"math/bits"

	"github.com/weft-telemetry/weft/model"
)

// Combined is a counting table that serves as its own flow filter: a flow is new
// exactly if one of its cells has no flow yet. Only flow counts are kept, which
// is sufficient for that test.
type Combined struct {
	tables int
	width  int
	seed   uint64
	flows  []uint16
}

// NewCombined returns an empty table of tables sub-tables with cells cells in all.
func NewCombined(tables, cells int, seed uint64) *Combined {
	width := max(cells/tables, 1)
	return &Combined{tables: tables, width: width, seed: seed, flows: make([]uint16, tables*width)}
}

// Add inserts a flow if it seems new, and reports whether it did.
func (t *Combined) Add(key *model.FlowKey) bool {
	fresh := false
	for i := range t.tables {
		fresh = fresh || t.flows[t.cell(key, i)] == 0
	}
	if fresh {
		for i := range t.tables {
			t.flows[t.cell(key, i)]++
		}
	}
	return fresh
}

func (t *Combined) cell(key *model.FlowKey, table int) int {
	at, _ := bits.Mul64(key.Hash(t.seed+uint64(table)), uint64(t.width))
	return table*t.width + int(at)
}

// filterSuccess returns the probability that none of a number of flows is mistaken
// for a known one when it is first seen, by a filter with a number of slots of
// which each flow sets hashes: the paper's product over all flows.
func filterSuccess(flows int, slots float64, hashes int) float64 {
	// The sum of logarithms as an integral: thousands of steps are exact enough
	// for a million flows.
	const steps = 2000
	n, k := float64(flows), float64(hashes)
	sum := 0.0
	for i := range steps {
		in := (float64(i) + 0.5) / steps * n
		sum += math.Log1p(-math.Pow(-math.Expm1(-k*in/slots), k))
	}
	return math.Exp(sum * n / steps)
}

// FilterSlots returns the least number of slots, bits of a filter or cells of a
// combined table, with which filterSuccess reaches a probability, and the
// number of hashes for it.
func FilterSlots(flows int, success float64) (slots float64, hashes int) {
	slots = math.Inf(1)
	for k := 1; k <= 64; k++ {
		low, high := float64(flows)/10, float64(flows)*1e4
		if filterSuccess(flows, high, k) < success {
			continue
		}
		for high/low > 1.0001 {
			if mid := math.Sqrt(low * high); filterSuccess(flows, mid, k) < success {
				low = mid
			} else {
				high = mid
			}
		}
		if high < slots {
			slots, hashes = high, k
		}
	}
	return slots, hashes
}
