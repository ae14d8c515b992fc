package live

import (
	"context"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/race"
)

// TestHealthyFabricHasNoFindings runs a fabric without faults: where packets are in flight,
// or in a queue, when a slot ends, no flow is said to have stopped.
func TestHealthyFabricHasNoFindings(t *testing.T) {
	l, err := NewDemo(slow(3), control.Output{})
	if err != nil {
		t.Fatal(err)
	}
	pass(t, l, race.Less(3*time.Second, 200*time.Millisecond))
	b := control.NewBackend(l.Controller, func(_ context.Context, f func()) error { f(); return nil }, api.NewEventHub(1, 1))
	for _, f := range b.FlowFindings(time.Time{}, time.Unix(1<<33, 0)).Paths {
		if !f.Stalled {
			t.Errorf("%s at %v, confirmed %v, of %d flows, %d pass", f.Kind, f.At, f.Confirmed, len(f.Flows), f.PassedFlows)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
