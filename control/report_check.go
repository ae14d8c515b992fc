package control

import (
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/flowset"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/poll"
)

// kindOf is the kind of the reports in a list, and false if it is not in the plan.
func (l *ListPlan) kindOf(list dta.ListID) (Kind, bool) {
	switch {
	case l.Flowsets.Contains(list):
		return Flowset, true
	case l.Labels.Contains(list):
		return Label, true
	case l.Mirrors.Contains(list):
		return Mirror, true
	case l.Epochs.Contains(list):
		return Epoch, true
	case l.DiagnosisRequests.Contains(list):
		return DiagnosisRequest, true
	}
	return 0, false
}

// peek returns who a report says it is from, and its time, before anything is read
// or changed because of it. It is false for one that the parser will refuse, and for
// formats that contain neither.
func peek(k Kind, data []byte) (node model.NodeID, at model.Time, ok bool) {
	switch k {
	case Flowset:
		return flowset.Peek(data)
	case Label:
		return label.PeekExport(data)
	case Mirror:
		return mirror.Peek(data)
	case Epoch:
		return epoch.Peek(data)
	default:
		return poll.Peek(data)
	}
}

// admitReport checks who a report says it is from, and its time, and counts it if it
// is refused. Analyses index tables by switch and lay out time by slots: a switch that
// does not exist, or a year that is not now, must not reach them. It returns the
// reporter; noReporter where the report does not say.
func (c *Controller) admitReport(now model.Time, k Kind, list dta.ListID, data []byte) (reporter model.NodeID, ok bool) {
	node, at, known := peek(k, data)
	if !known {
		return noReporter, true
	}
	owner, owned := c.cfg.ListPlan.FlowsetOwner(list)
	if !c.fabric.HasNode(node) || c.fabric.Node(node).Role.IsSwitch() != (k != DiagnosisRequest) ||
		k == Flowset && (!owned || owner != node) {
		c.stats.Unknown[k]++
		return noReporter, false
	}
	c.compareClocks(at)
	untimed := k == DiagnosisRequest && at == 0
	if w := c.cfg.TimeWindow; w > 0 && !untimed && !within(at, max(now, c.wall), w) {
		c.stats.Untimely[k]++
		return noReporter, false
	}
	return node, true
}

// noReporter is no node of a fabric.
const noReporter = model.NodeID(math.MaxUint32)

// within reports whether an instant is at most w before or after now.
func within(at, now model.Time, w time.Duration) bool { return at >= now.Add(-w) && at <= now.Add(w) }
