// Package everflow measures the claims of the Everflow paper about tracing
// packets, with Weft's mirrors, analyzers and guided probes in simulated
// switches. Origin: docs/papers.md#everflow.
package everflow

import "github.com/weft-telemetry/weft/repro/claim"

// Claims lists them in the order of the paper.
func Claims() []claim.Claim {
	return []claim.Claim{
		everyFlow,
		consistent,
		reshuffle,
		failover,
		inner,
		dropKinds,
		transient,
		linkLatency,
		faults,
		storage,
		cases,
	}
}
