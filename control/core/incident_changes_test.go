package core

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
)

// TestClosedIncidentsAreForgotten: nothing is remembered of closed incidents,
// however they ended.
func TestClosedIncidentsAreForgotten(t *testing.T) {
	c := incidentChanges{}
	for _, in := range []incident.Incident{
		{ID: 1, Cause: anomaly.Loss},
		{ID: 2, Cause: anomaly.Blackhole},
		{ID: 3, Cause: anomaly.Incast},
	} {
		if change, ok := c.classify(&in); !ok || change != Found {
			t.Errorf("incident %d was not reported as found", in.ID)
		}
		if _, known := c[in.ID]; !known {
			t.Errorf("incident %d is not remembered", in.ID)
		}
	}
	for want, in := range map[IncidentChange]incident.Incident{
		Closed: {ID: 1, Cause: anomaly.Loss, Closed: true},
		Merged: {ID: 2, Cause: anomaly.Blackhole, Closed: true, MergedInto: 1},
	} {
		if change, ok := c.classify(&in); !ok || change != want {
			t.Errorf("incident %d was reported as %v, %v; want %v", in.ID, change, ok, want)
		}
	}
	if _, ok := c.classify(&incident.Incident{ID: 3, Cause: anomaly.Contention, Closed: true}); ok {
		t.Error("a notice was reported")
	}
	if len(c) != 0 {
		t.Errorf("still remembered: %v", c)
	}
}
