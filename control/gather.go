package control

import "github.com/weft-telemetry/weft/analyze/incident"

// question is what was asked for: evidence of one source about one incident.
type question struct {
	incident uint64
	source   incident.Source
}
