package core

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/control"
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

// TestMemoryKeepsReportsByKey: reports that are not in lists have arrived; nothing reads
// them once. All others are read or overwritten.
func TestMemoryKeepsReportsByKey(t *testing.T) {
	var c control.Stats
	c.Reports[control.Flowset] = 3
	memory := PipelineStages(translate.IntakeStats{Stored: 10, Appended: 4}, 1, c)[1]
	if lost := lossOf(memory.Losses, "overwritten").Count; memory.In != 10 || memory.Out != 9 || lost != 1 {
		t.Errorf("%d in, %d out, %d lost; want 10, 9, 1", memory.In, memory.Out, lost)
	}
}

// TestRejectedReportsHaveTheirReason: well-formed reports that were not used, and
// what bounds evicted, are losses of the analyses with their own reason.
func TestRejectedReportsHaveTheirReason(t *testing.T) {
	var c control.Stats
	c.Reports[control.Flowset], c.Reports[control.Epoch], c.Reports[control.DiagnosisRequest] = 100, 100, 100
	c.Refused[control.Flowset] = 1
	c.Rejected[control.Flowset][control.Oversized], c.Rejected[control.Flowset][control.NoMemory] = 2, 3
	c.Rejected[control.Epoch][control.Excess], c.Rejected[control.DiagnosisRequest][control.Excess] = 4, 5
	c.Rejected[control.Epoch][control.Implausible] = 8
	c.Epochs.Dropped, c.EvictedTraces, c.UnprovenTraces = 6, 7, 9
	analyzers := PipelineStages(translate.IntakeStats{}, 0, c)[2]
	if analyzers.Out != 300-1-2-3-4-5-8 {
		t.Errorf("%d reports used; want %d", analyzers.Out, 300-1-2-3-4-5-8)
	}
	for reason, want := range map[string]uint64{
		"malformed flowset": 1, "oversized flowset": 2, "no memory for flowset": 3, "excess epoch": 4, "excess diagnosis-request": 5,
		"dropped epoch": 6, "evicted trace": 7, "unproven trace": 9, "implausible epoch": 8,
	} {
		if got := lossOf(analyzers.Losses, reason).Count; got != want {
			t.Errorf("%s: %d; want %d", reason, got, want)
		}
	}
}
