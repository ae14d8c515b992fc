package control

import (
	"errors"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/control/rootcause"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// Rejection says why an analysis did not use a well-formed report.
type Rejection uint8

// Rejections.
const (
	Oversized     Rejection = iota // its table is larger than allowed, or no switch has one like it
	Implausible                    // it counts more than the switch can have seen, or its intervals overlap
	Contradictory                  // others of the same flowset or snapshot say otherwise
	Excess                         // beyond what is kept of one detection, or of requests
	NoMemory                       // its switch holds most of the memory, and there is none left
	NumRejections
)

var rejectionNames = [NumRejections]string{"oversized", "implausible", "contradictory", "excess", "no memory for"}

// String prints what stands before the kind of a report.
func (r Rejection) String() string { return rejectionNames[r] }

// rejections of the errors of analyses.
var rejections = []struct {
	err error
	why Rejection
}{
	{flows.ErrTooLarge, Oversized},
	{flows.ErrGeometry, Oversized},
	{flows.ErrImplausible, Implausible},
	{flows.ErrConflict, Contradictory},
	{flows.ErrMemory, NoMemory},
	{epoch.ErrIntervals, Implausible},
	{provenance.ErrConflict, Contradictory},
	{provenance.ErrExcess, Excess},
	{provenance.ErrMemory, NoMemory},
	{rootcause.ErrTooManyRequests, Excess},
}

// countRefusal counts a report that an analysis did not use, by its reason.
func (c *Controller) countRefusal(k Kind, err error) {
	if errors.Is(err, flows.ErrUnknown) || errors.Is(err, provenance.ErrUnknown) {
		c.stats.Unknown[k]++
		return
	}
	for i := range rejections {
		if errors.Is(err, rejections[i].err) {
			c.stats.Rejected[k][rejections[i].why]++
			return
		}
	}
	c.stats.Refused[k]++
}

// causeStats are the counts of this and earlier diagnosers.
func (c *Controller) causeStats() rootcause.Stats {
	if c.stats.Rebased == 0 {
		return c.diagnoser.Stats()
	}
	return sumCounters(c.causesBase, c.diagnoser.Stats())
}
