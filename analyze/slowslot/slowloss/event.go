// Package slowloss is analyze/loss with a map of flowlets: slow and obvious. Only tests
// import it, to compare.
package slowloss

import "github.com/weft-telemetry/weft/analyze/loss"

// Types of analyze/loss.
type (
	Event           = loss.Event
	Segment         = loss.Segment
	Config          = loss.Config
	Stats           = loss.Stats
	Pattern         = loss.Pattern
	AffectedFlowlet = loss.AffectedFlowlet
)

// Patterns.
const (
	NoLoss    = loss.NoLoss
	Scattered = loss.Scattered
	Selective = loss.Selective
)
