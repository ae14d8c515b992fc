// Package slowload is analyze/load with maps of flows: slow and obvious. Only tests import
// it, to compare.
package slowload

import "github.com/weft-telemetry/weft/analyze/load"

// Types of analyze/load.
type (
	Share          = load.Share
	Imbalance      = load.Imbalance
	BalanceConfig  = load.BalanceConfig
	Microburst     = load.Microburst
	PeriodicSender = load.PeriodicSender
	BurstConfig    = load.BurstConfig
	Size           = load.Size
)

// Causes.
const (
	Hash  = load.Hash
	Burst = load.Burst
)
