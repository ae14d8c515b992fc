// Package intlabel measures the claims of the INT-label paper, with Weft's labels
// in simulated switches, and models the systems that the paper compares itself
// with. Origin: docs/papers.md#int-label.
package intlabel

import "github.com/weft-telemetry/weft/repro/claim"

// Claims lists them in the order of the paper.
func Claims() []claim.Claim {
	return []claim.Claim{
		trafficRate,
		exports,
		redundant,
		ratio,
		trade,
		automatic,
		steady,
		proInterval,
		proLoss,
		probeLoss,
		probeLossShare,
		topology,
		arrivals,
		histogram,
		rest,
		oddsOrder,
		bandwidth,
		tracePackets,
		traceBits,
		idlePorts,
	}
}
