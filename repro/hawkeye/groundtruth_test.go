package hawkeye

import (
	"testing"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/repro/claim"
)

// TestPausesThatAlternate plays a trace in which an incast keeps its queue full
// for milliseconds, and the four queues in a row before it are stopped and let go
// in turn, every ten microseconds: no look sees all of them wait. The incast is
// the reason all the same.
func TestPausesThatAlternate(t *testing.T) {
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
