// Package hawkeye measures what the Hawkeye paper claims, with Weft's telemetry
// in simulated switches and Weft's diagnosis: random traces of the six
// anomalies, scored against the simulator's wait-for relation, beside the
// systems that the paper compares itself with. Origin: docs/papers.md#hawkeye.
package hawkeye

import "github.com/weft-telemetry/weft/repro/claim"

// Claims returns the claims in the order of the paper.
func Claims() []claim.Claim {
	c := &comparison{}
	return []claim.Claim{
		parameters,
		c.upperBound(),
		c.overhead(),
		c.granularity(),
		c.switches(),
		large,
		longTraces,
		caseStudiesClaim,
		reduction,
		twoAtOnce,
		undisturbed,
		clocks,
		lostReports,
		accounts,
		calibration,
		anyTwo,
		sweep,
	}
}
