package main

import (
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/control/api"
)

// TestHealthNamesWhoIsRefused: losses have their reason, and refused reports the
// address they came from.
func TestHealthNamesWhoIsRefused(t *testing.T) {
	h := api.Health{
		State: "degraded", UptimeMs: 61_000, Alerts: []string{"DTA translator loses reports"}, Silent: []string{"tor0", "leaf1"},
		Stages: []api.Stage{{
			Name: "translator", State: "degraded", Unit: "reports", In: 12, Out: 5, InPerSecond: 3.4,
			Losses: []api.StageLoss{
				{Reason: "duplicate", Count: 2, Expected: true},
				{Reason: "stale", About: "too late to distinguish from a retransmission"},
				{Reason: "no MAC", Count: 5, PerSecond: 1},
			},
		}},
		Refused: []api.RefusedSource{{Input: "dta", Address: "192.0.2.7", Datagrams: 5, Reasons: map[string]uint64{"no MAC": 4, "wrong MAC": 1}}},
	}
	var out strings.Builder
	if err := printHealth(&out, &h); err != nil {
		t.Fatal(err)
	}
	want := `degraded, up for 61 s
alert: DTA translator loses reports
silent: tor0, leaf1

STAGE       STATE     IN  OUT  UNIT     IN/S  OUT/S
translator  degraded  12  5    reports  3     0

LOST  UNIT     PER SECOND  STAGE       REASON
2     reports  0           translator  duplicate (by design)
5     reports  1           translator  no MAC

REFUSED  INPUT  ADDRESS    REASONS
5        dta    192.0.2.7  no MAC (4), wrong MAC (1)
`
	if out.String() != want {
		t.Errorf("printHealth:\n%s\nwant:\n%s", &out, want)
	}
}
