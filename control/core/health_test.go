package core

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
)

// TestHealthLeavesStagesAlone: the stages may be those of a snapshot that other
// goroutines read.
func TestHealthLeavesStagesAlone(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tracker := NewHealthTracker(at)
	stages := func(lost uint64) []api.Stage {
		return []api.Stage{{Name: "memory", In: 10, Losses: []api.StageLoss{{Reason: "overwritten", Count: lost}}}}
	}
	tracker.Health(at, stages(0))
	shared := stages(5)
	h := tracker.Health(at.Add(time.Second), shared)
	if got := h.Stages[0].Losses[0].PerSecond; got != 5 || h.State != "degraded" {
		t.Errorf("%v lost per second, state %s; want 5, degraded", got, h.State)
	}
	if got := shared[0].Losses[0].PerSecond; got != 0 {
		t.Errorf("the snapshot was changed: %v lost per second", got)
	}
}
