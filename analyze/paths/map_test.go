package paths

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

func TestSlotAtRounds(t *testing.T) {
	const ms = time.Millisecond
	for start, want := range map[time.Duration]int64{0: 0, -slot: -1, slot + 4*ms: 1, slot - 4*ms: 1, -4 * ms: 0} {
		if got := SlotAt(model.Time(start), slot); got != want {
			t.Errorf("SlotAt(%v) = %d; want %d", start, got, want)
		}
	}
}
