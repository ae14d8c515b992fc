package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// livenessTable is when each switch reported last, by kind of report, 0: never, and how
// often. Any report shows that its switch and the path from it work.
type livenessTable struct {
	fabric   *topo.Fabric
	lastSeen [][numKinds]model.Time // by node
	reports  [][numKinds]uint64     // by node
}

func newLivenessTable(f *topo.Fabric) livenessTable {
	n := len(f.Nodes())
	return livenessTable{fabric: f, lastSeen: make([][numKinds]model.Time, n), reports: make([][numKinds]uint64, n)}
}

// markAlive notes a report of a node. A report may name a node that is not a
// switch of the fabric: it is ignored.
func (h *livenessTable) markAlive(now model.Time, k Kind, id model.NodeID) {
	if h.fabric.HasNode(id) && h.fabric.Node(id).Role.IsSwitch() {
		h.lastSeen[id][k] = max(now, 1)
		h.reports[id][k]++
	}
}

// NoteOverwritten notes that reports of a list were overwritten before they were
// read: its switch reports, and this collector is overloaded. Nothing follows from
// what those reports would have contained.
func (c *Controller) NoteOverwritten(now model.Time, list dta.ListID) {
	if sw, ok := c.cfg.ListPlan.FlowsetOwner(list); ok {
		c.liveness.markAlive(now, Flowset, sw)
	}
	if c.cfg.Forward != nil {
		c.cfg.Forward.Lost(now, list, false)
		return
	}
	if l := &c.cfg.ListPlan.Mirrors; l.Contains(list) {
		c.traces.Partition(int(list - l.First)).MirrorsLost(now)
	}
}

// NoteDropped notes that reports were lost before they reached a list: dropped by the
// kernel, or by a full stream; or that they may be read too late, by a host that is
// overloaded. That a mirror is missing then proves nothing.
func (c *Controller) NoteDropped(now model.Time) {
	if c.cfg.Forward != nil {
		c.cfg.Forward.Lost(now, 0, true)
		return
	}
	c.traces.MirrorsLost(now)
}

// lastReport is when a switch sent its last report of any kind; 0: never.
func (h *livenessTable) lastReport(id model.NodeID) (at model.Time) {
	for _, t := range h.lastSeen[id] {
		at = max(at, t)
	}
	return at
}

// snapshot returns the ages of the last reports, by switch and kind.
func (h *livenessTable) snapshot(now model.Time) []api.ReportAge {
	list := make([]api.ReportAge, 0, len(h.lastSeen))
	for id := range h.lastSeen {
		for k, at := range h.lastSeen[id] {
			if at != 0 {
				list = append(list, api.ReportAge{
					Switch: h.fabric.Node(model.NodeID(id)).Name, Source: Kind(k).String(), Reports: h.reports[id][k],
					AgeMs: float64(max(now.Sub(at), 0)) / float64(time.Millisecond),
				})
			}
		}
	}
	return list
}

// AddLiveness adds the ages of reports to health, source by source. A switch that
// reported and has fallen silent makes it degraded.
func (v *View) AddLiveness(h *api.Health) {
	now := v.snapshot()
	h.ReportAges, h.Wrong = slices.Clone(now.liveness), slices.Clone(now.wrong)
	h.Sources, h.Silent = []api.SourceHealth{}, []string{}
	limit := float64(v.silent) / float64(time.Millisecond)
	newest := map[string]float64{}
	for _, one := range h.ReportAges {
		if age, known := newest[one.Switch]; !known || one.AgeMs < age {
			newest[one.Switch] = one.AgeMs
		}
		i := slices.IndexFunc(h.Sources, func(s api.SourceHealth) bool { return s.Source == one.Source })
		if i < 0 {
			i = len(h.Sources)
			h.Sources = append(h.Sources, api.SourceHealth{Source: one.Source, AgeMs: one.AgeMs})
		}
		s := &h.Sources[i]
		s.AgeMs = min(s.AgeMs, one.AgeMs)
		if s.Switches++; one.AgeMs > limit {
			s.Silent++
		}
	}
	for i := range h.ReportAges {
		one := &h.ReportAges[i]
		one.Silent = newest[one.Switch] > limit
	}
	for name, age := range newest {
		if age > limit {
			h.Silent = append(h.Silent, name)
		}
	}
	slices.Sort(h.Silent)
	slices.SortFunc(h.Sources, func(a, b api.SourceHealth) int { return strings.Compare(a.Source, b.Source) })
	if n := len(h.Silent); n > 0 {
		h.State = "degraded"
		h.Alerts = append(h.Alerts, fmt.Sprintf("no report for %v from %s, which reported before; check these switches and their path to the collector",
			v.silent, joinSome(h.Silent)))
		h.Silent = h.Silent[:min(n, maxSilentListed)]
	}
	if n := len(h.Wrong); n > 0 {
		h.State = "degraded"
		texts := make([]string, n)
		for i := range h.Wrong {
			texts[i] = h.Wrong[i].Text
		}
		h.Alerts = append(h.Alerts, fmt.Sprintf("%s; do not rely on it before it is repaired", joinSome(texts)))
	}
}

// maxSilentListed is how many silent switches are named.
const maxSilentListed = 100

// joinSome joins the first names, and counts the others.
func joinSome(names []string) string {
	const some = 5
	if len(names) <= some {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:some], ", "), len(names)-some)
}
