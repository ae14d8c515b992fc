// Package flowradar measures the claims of the FlowRadar paper about encoded
// flowsets, with Weft's own encoder and decoder, and implements the structures
// that the paper compares itself with. Origin: docs/papers.md#flowradar.
package flowradar

import "github.com/weft-telemetry/weft/repro/claim"

// Claims lists them in the order of the paper.
func Claims() []claim.Claim {
	return []claim.Claim{
		combined,
		pair,
		memorySingle,
		memoryNet,
		memoryRange,
		memoryRangeNet,
		bandwidth,
		moreFlows,
		counterDecode,
		decodeTime,
		growth,
		routing,
		loop,
		blackhole,
		shortHole,
		lossDelay,
		partialDeployment,
		dleft,
		burst,
		iblt,
	}
}
