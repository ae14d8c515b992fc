// Package dta measures the claims of the paper on Direct Telemetry Access about
// memory that is written without reading and queried later, with Weft's own
// structures. Origin: docs/papers.md#dta.
package dta

import (
	"fmt"

	"github.com/weft-telemetry/weft/repro/claim"
)

// Claims lists them in the order of the paper.
func Claims() []claim.Claim {
	return []claim.Claim{
		cpuCollectors,
		keyWriteBounds,
		postcardBounds,
		heavyHitters,
		collection,
		switches,
		operations,
		payload,
		querySpeed,
		redundancy,
		longevity,
		gather,
		postcarding,
		appendBatch,
		appendLists,
		polling,
	}
}

func percent(p float64) string {
	if p > 0 && p < 1e-4 {
		return fmt.Sprintf("%.2g %%", 100*p)
	}
	return fmt.Sprintf("%.4g %%", 100*p)
}
