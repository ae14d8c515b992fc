package dta

import (
	"testing"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/repro/claim"
	wire "github.com/weft-telemetry/weft/wire/dta"
)

// In a cache of one row no path is aggregated once a second flow reports
// concurrently, and every path while there is none.
func TestGatheredInOneRow(t *testing.T) {
	for others, want := range map[int]claim.Rate{0: {Hits: 100, Of: 100}, 1: {Hits: 0, Of: 100}} {
		got, err := pathsGathered(t.Context(), claim.Rand(1, 1), 1, others, 100)
		if err != nil || got != want {
			t.Errorf("one row, %d other flows: %v, %v; want %v", others, got, err, want)
		}
	}
}

// A path of five postcards that never gets its fifth is still written, once.
func TestOperationsCountWhatMemoryExecutes(t *testing.T) {
	f, err := newRemoteTranslator(3, list.Weft, ofSixteen)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, tc := range []struct {
		kind    wire.Primitive
		reports int
		ops     float64 // of all reports
	}{
		{wire.Postcarding, 4, 2},
		{wire.Postcarding, 10, 4},
		{wire.KeyWrite, 3, 6},
		{wire.KeyIncrement, 3, 6},
		{wire.Append, 17, 4}, // two batches, each with a write of the count
	} {
		ops, _, err := f.operations(tc.reports, reportsOf4Bytes(tc.kind, 3))
		if got := ops * float64(tc.reports); err != nil || got < tc.ops-1e-9 || got > tc.ops+1e-9 {
			t.Errorf("%d reports of %v: %v operations, %v; want %v", tc.reports, tc.kind, got, err, tc.ops)
		}
	}
}
