package core

import (
	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
)

// IncidentChange is what happened to an incident, as a log reports it.
type IncidentChange uint8

// Changes of incidents.
const (
	Found  IncidentChange = iota // it is new, or its cause has changed
	Closed                       // no further evidence came
	Merged                       // it is part of another, Incident.MergedInto
)

// incidentChanges remembers which incidents were reported with which cause.
// Notices are not reported.
type incidentChanges map[uint64]anomaly.Cause

// classify returns the change that an update of an incident is; false where it
// is none that is reported.
func (c incidentChanges) classify(in *incident.Incident) (IncidentChange, bool) {
	was, known := c[in.ID]
	if in.Closed {
		delete(c, in.ID) // also one that ends as part of another
	}
	switch {
	case in.MergedInto != 0:
		return Merged, known
	case in.Severity() == anomaly.Notice:
		return 0, false
	case in.Closed:
		return Closed, known
	case !known || was != in.Cause:
		c[in.ID] = in.Cause
		return Found, true
	}
	return 0, false
}
