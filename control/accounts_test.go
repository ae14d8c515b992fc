package control

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/model"
)

// TestAccountIsBounded: reports that name thousands of queues and flows must not fill
// the records of verdicts, and small terms are left out.
func TestAccountIsBounded(t *testing.T) {
	c := evidenceBed(t)
	port := c.portNamed(t, "leaf0", "tor0")
	place := attribution.Place{Queue: attribution.Queue{Port: port, Class: 3}, Peer: c.fabric.Port(port).Peer}
	us := model.Time(time.Microsecond)
	v := diagnose.Verdict{Account: &attribution.Account{Late: 2000 * time.Microsecond}, Timeline: attribution.Timeline{From: 5 * us, To: 2005 * us}}
	for range 5000 {
		v.Account.Terms = append(v.Account.Terms, attribution.Term{Kind: attribution.Contention, Place: &place, Time: 100 * time.Microsecond, Culprits: make([]attribution.Culprit, 1000)})
		v.Timeline.Rows = append(v.Timeline.Rows, attribution.TimelineRow{Place: place, Reported: true, Paused: []attribution.Span{{From: 7 * us, To: 10 * us}}})
	}
	a := c.account(&v)
	if len(a.Terms) != maxTerms || len(a.Terms[0].Culprits) != maxTermFlows || len(a.Timeline.Rows) != maxTimelineRows {
		t.Errorf("%d terms, %d flows of the first, %d rows; want %d, %d, %d", len(a.Terms), len(a.Terms[0].Culprits), len(a.Timeline.Rows), maxTerms, maxTermFlows, maxTimelineRows)
	}
	if s := a.Timeline.Rows[0].Paused[0]; s.FromNs != 2000 || s.ToNs != 5000 || a.Timeline.LengthNs != 2_000_000 {
		t.Errorf("paused %+v of %d ns; want 2 to 5 µs of 2 ms", s, a.Timeline.LengthNs)
	}
	v.Account.Terms[1].Time = 19 * time.Microsecond
	if a := c.account(&v); len(a.Terms) != 1 {
		t.Errorf("%d terms; want no term below a hundredth", len(a.Terms))
	}
	if c.account(&diagnose.Verdict{}) != nil {
		t.Error("an account of no packet")
	}
}
