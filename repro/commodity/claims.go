// Package commodity measures how right verdicts are that rest on what switches on
// sale export: port counters at an interval and samples of packets. It is not the
// claim of a paper: the figures are Weft's own, and so are the limits.
// Manual: docs/commodity.md.
package commodity

import "github.com/weft-telemetry/weft/repro/claim"

// Claims lists them.
func Claims() []claim.Claim { return []claim.Claim{verdicts, healthyRuns, intervals} }

// Mechanisms that a laboratory can remove.
var (
	pfcCounters = claim.Mutation{Name: "pfc counters", Removes: "switches count neither pause frames nor pause time"}
	samples     = claim.Mutation{Name: "samples", Removes: "switches sample no packets and notify of no drops"}
	thresholds  = claim.Mutation{Name: "thresholds", Removes: "any pause in any interval is a verdict"}
)

// newLab returns the laboratory, or what options leave of it.
func newLab(o claim.Options) lab {
	l := lab{k: o.Pick(8, 4), load: 0.2}
	l.removed.pfc, l.removed.samples = o.Without(pfcCounters), o.Without(samples)
	l.anyPause = o.Without(thresholds)
	return l
}

// setting describes the laboratory.
const setting = "links of 1 Gb/s, so that seconds can be simulated, with 2 MB per switch and ECN from 40 to 160 KB; " +
	"MTU 4096, DCQCN, 20 % background load of short flows; switches are polled at instants of their own"
