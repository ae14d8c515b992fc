package hawkeye

import (
	"testing"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/repro/claim"
)

// TestAlternatingPauses simulates a trace in which an incast keeps its queue full
// for milliseconds, and the four queues in a row upstream are paused and resumed
// in turn, every ten microseconds: no sample shows all of them waiting. The incast
// is the cause all the same.
func TestAlternatingPauses(t *testing.T) {
	race.LeaveToPlainRun(t)
	r, err := best().simulate(t.Context(), claim.Rand(52, 64<<4|uint64(outContention)+1).Uint64(), 0, outContention)
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.diagnose(hawkeyeMethod, 0)
	if err != nil {
		t.Fatal(err)
	}
	if o := r.score(list, 0); o.right == 0 || o.wrong != 0 || o.missed() {
		t.Errorf("score %+v; want some right, none wrong, nothing missed", o)
	}
}
