package incident

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// TestBackgroundCongestionLeadsToNoFault: an incast too brief to affect flows, on its
// path or at the receiver's port, and then an imbalance at a switch of its extent, in either
// order. The imbalance is an incident of its own, and the incast stays a notice, until
// a port is paused for long.
func TestBackgroundCongestionLeadsToNoFault(t *testing.T) {
	for name, atReceiver := range map[string]bool{"on the path": false, "at the receiver": true} {
		incast := Evidence{
			At: 46 * ms, From: 32 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Minor: true, Location: at(32, 1),
			Extent: []model.NodeID{30, 32}, Receiver: 7, HasReceiver: true, AtReceiver: atReceiver, Culprits: []model.FlowKey{flow(1)},
		}
		imbalance := Evidence{
			At: 48 * ms, From: 30 * ms, Source: anomaly.Flowsets, Cause: anomaly.Imbalance, Confirmed: true, Location: at(30, 0),
		}
		stall := Evidence{
			At: 50 * ms, From: 40 * ms, Source: anomaly.Counters, Cause: anomaly.Stall, Confirmed: true, Location: at(30, 3),
			NextHop: 32, HasNextHop: true,
		}
		for order, list := range map[string][2]Evidence{"before": {incast, imbalance}, "after": {imbalance, incast}} {
			t.Run(name+", "+order, func(t *testing.T) {
				c := newCorrelator(t)
				found := map[anomaly.Cause]*Incident{}
				for _, e := range list {
					found[e.Cause] = c.AddEvidence(e)
				}
				first, second := found[anomaly.Incast], found[anomaly.Imbalance]
				if first == second || first.Cause != anomaly.Incast || second.Cause != anomaly.Imbalance {
					t.Fatalf("incidents %d (%v) and %d (%v); want an incast and an imbalance", first.ID, first.Cause, second.ID, second.Cause)
				}
				if first.Severity() != anomaly.Notice || second.Severity() != anomaly.Warning {
					t.Errorf("severities %v and %v; want a notice and a warning", first.Severity(), second.Severity())
				}
				if c.AddSupporting(stall) != first || first.Severity() != anomaly.Warning {
					t.Errorf("after a pause of a slot the incast is a %v; want a warning", first.Severity())
				}
			})
		}
	}
}

// TestLongCongestionExplainsImbalance: flows that an incast holds back for long make equal-cost
// ports of its switches uneven.
func TestLongCongestionExplainsImbalance(t *testing.T) {
	c := newCorrelator(t)
	in := c.AddEvidence(Evidence{
		At: 46 * ms, From: 32 * ms, Source: anomaly.Epochs, Cause: anomaly.Incast, Confirmed: true, Location: at(32, 1),
		Extent: []model.NodeID{30, 32}, Culprits: []model.FlowKey{flow(1)},
	})
	if got := c.AddEvidence(Evidence{
		At: 47 * ms, From: 30 * ms, Source: anomaly.Flowsets, Cause: anomaly.Imbalance, Confirmed: true, Location: at(30, 0),
	}); got != in || in.Cause != anomaly.Incast {
		t.Errorf("the imbalance belongs to incident %d (%v); want the incast", got.ID, got.Cause)
	}
}
