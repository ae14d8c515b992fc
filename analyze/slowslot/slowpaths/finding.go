// Package slowpaths is analyze/paths with a map of flows for each slot and a path that is
// made anew for each question: slow and obvious. Only tests import it, to compare.
package slowpaths

import "github.com/weft-telemetry/weft/analyze/paths"

// Finding and Config are those of analyze/paths.
type (
	Finding = paths.Finding
	Config  = paths.Config
)

// Kinds of finding.
const (
	Loop       = paths.Loop
	BlackHole  = paths.BlackHole
	Silent     = paths.Silent
	WrongRoute = paths.WrongRoute
)
