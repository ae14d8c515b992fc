package paths

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
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

// TestAbsenceIsOfOneFamily shows a switch of which only the IPv4 flowset came:
// it proves nothing about IPv6 flows.
func TestAbsenceIsOfOneFamily(t *testing.T) {
	m := NewMap(0, slot)
	m.AddFlowset(&flows.Decoded{Switch: 1, Length: slot, MayContain: func(model.FlowKey) bool { return false }})
	if _, p := m.At(1, model.FlowKey{Proto: model.UDP}); p != Absent {
		t.Errorf("presence of an IPv4 flow that the filter denies is %d; want absent", p)
	}
	if _, p := m.At(1, model.FlowKey{Proto: model.UDP, V6: true}); p != Unknown {
		t.Errorf("presence of an IPv6 flow is %d; want unknown", p)
	}
}
