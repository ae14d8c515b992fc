package incident

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// Recall makes a closed incident of what is known about one that the correlator has
// forgotten, to compare evidence with it.
func Recall(e Evidence) *Incident {
	in := &Incident{Closed: true}
	in.addEvidence(&e)
	return in
}

// Find returns an incident that is open, or closed and remembered; otherwise nil.
func (c *Correlator) Find(id uint64) *Incident {
	for _, list := range [...][]*Incident{c.open, c.remembered} {
		for _, in := range list {
			if in.ID == id {
				return in
			}
		}
	}
	return nil
}

// CloseVerified closes an open incident whose fault was checked and is gone since a
// time: evidence of the time before may still come, and belongs to it.
func (c *Correlator) CloseVerified(in *Incident, since model.Time) {
	i := slices.Index(c.open, in)
	if i < 0 {
		return
	}
	in.Verified, in.Last = true, max(in.Last, since)
	c.closeAt(i)
}

// Reopen adds evidence that the fault of an incident is still there, and opens the
// incident again if it is closed. It reports whether the incident is known: open, or
// closed and remembered.
func (c *Correlator) Reopen(in *Incident, e Evidence) bool {
	e.keepOrder()
	if i := slices.Index(c.remembered, in); i >= 0 {
		c.remembered = slices.Delete(c.remembered, i, i+1)
		c.closedChanges = slices.DeleteFunc(c.closedChanges, func(o *Incident) bool { return o == in })
		if len(c.open) >= c.cfg.MaxOpen {
			c.closeStalest()
		}
		in.Closed, in.Verified = false, false
		at, _ := slices.BinarySearchFunc(c.open, in.ID, func(o *Incident, id uint64) int { return cmp.Compare(o.ID, id) })
		c.open = slices.Insert(c.open, at, in) // the oldest first
	} else if !slices.Contains(c.open, in) {
		return false
	}
	in.addEvidence(&e)
	in.Last = max(in.Last, e.At)
	return true
}

// ShowsAgain reports whether confirmed evidence, of any time, is about the fault of
// an incident: of its cause or one that leads to it, at its place.
func (in *Incident) ShowsAgain(e *Evidence) bool {
	switch {
	case !e.Confirmed || e.Cause.Family() != in.Cause.Family():
		return false
	case in.Cause == e.Cause && in.Cause.FabricWide():
		return true
	case in.Cause == e.Cause && in.Cause.PerPort() && in.Location != e.Location:
		return false
	case in.Cause.Family() == anomaly.PacketLoss && !in.sharesEnd(e):
		return false // losses elsewhere on the path of a flow are another fault
	case in.hasRoot():
		return e.isRoot() && in.isSameFault(e) // pauses spread from many faults, and prove none
	}
	return in.isNear(e)
}

// sharesEnd reports whether the node of an incident, or the one downstream of it, is
// either of evidence.
func (in *Incident) sharesEnd(e *Evidence) bool {
	is := func(n model.NodeID) bool { return n == e.Location.Node || e.HasNextHop && n == e.NextHop }
	return is(in.Location.Node) || in.HasNextHop && is(in.NextHop)
}
