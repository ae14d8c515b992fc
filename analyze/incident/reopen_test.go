package incident

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// TestVerifiedIncidentIsClosedAndReopened: late evidence of the time before belongs to
// a verified incident and does not open it; evidence that its fault is still there does.
func TestVerifiedIncidentIsClosedAndReopened(t *testing.T) {
	c := newCorrelator(t)
	lost := Evidence{
		At: 20 * ms, From: 10 * ms, Source: anomaly.Flowsets, Cause: anomaly.Blackhole, Confirmed: true,
		Location: at(4, 2), Flows: []model.FlowKey{flow(1)},
	}
	in := c.AddEvidence(lost)
	other := c.AddEvidence(Evidence{At: 21 * ms, From: 20 * ms, Source: anomaly.Epochs, Cause: anomaly.Storm, Confirmed: true, Location: at(40, 0)})
	c.TakeChanged()
	c.CloseVerified(in, 60*ms)
	if list := c.TakeChanged(); len(list) != 1 || list[0] != in || !in.Closed || !in.Verified || in.Last != 60*ms {
		t.Fatalf("changed %v, incident %+v; want it closed and verified since 60 ms", list, in)
	}
	late := lost
	late.At, late.From = 65*ms, 50*ms
	if got := c.AddEvidence(late); got != in || !in.Closed {
		t.Errorf("late evidence is in %d, closed %v; want in %d, which stays closed", got.ID, in.Closed, in.ID)
	}
	again := lost
	again.At, again.From = 300*ms, 290*ms
	if !in.ShowsAgain(&again) || other.ShowsAgain(&again) {
		t.Error("the same black hole does not show again, or another fault does")
	}
	if !c.Reopen(in, again) || in.Closed || in.Verified || in.Last != 300*ms {
		t.Errorf("incident %+v; want it open again", in)
	}
	if open := c.OpenIncidents(); len(open) != 2 || open[0] != in || open[1] != other {
		t.Errorf("open %v; want both, the oldest first", open)
	}
	if list := c.TakeChanged(); len(list) != 1 || list[0] != in {
		t.Errorf("changed %v; want it once", list)
	}
	if c.Find(in.ID) != in || c.Find(99) != nil || c.Reopen(&Incident{ID: 99}, again) {
		t.Error("an unknown incident was found, or a known one not")
	}
	elsewhere := again
	elsewhere.Location = at(9, 1)
	if in.ShowsAgain(&elsewhere) {
		t.Error("a loss elsewhere on the path shows it again")
	}
}
