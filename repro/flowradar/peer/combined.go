package peer

import (
	"math/bits"

	"github.com/weft-telemetry/weft/model"
)

// Combined is a counting table that serves as its own flow filter: a flow is new
// exactly if one of its cells has no flow yet. Only flow counts are kept, which
// is all that the question needs.
type Combined struct {
	tables int
	width  int
	seed   uint64
	flows  []uint16
}

// NewCombined makes an empty table of tables sub-tables with cells cells in all.
func NewCombined(tables, cells int, seed uint64) *Combined {
	width := max(cells/tables, 1)
	return &Combined{tables: tables, width: width, seed: seed, flows: make([]uint16, tables*width)}
}

// Add inserts a flow if it seems new, and tells whether it did.
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
