package coverage

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

// FlowPath is the path of one packet of a followed flow, by its labels, from the
// first switch to the last.
type FlowPath struct {
	Flow model.FlowKey
	Time model.Time // when the last switch removed the labels, by its clock
	Hops []label.Item
}

// SwitchLatency returns the time that the packet spent in switches.
func (w *FlowPath) SwitchLatency() (d time.Duration) {
	for _, h := range w.Hops {
		d += h.Latency
	}
	return d
}

// flowTable keeps the newest path of followed flows, the most recent of them.
type flowTable struct {
	paths map[model.FlowKey]*FlowPath
	order []model.FlowKey // by arrival of the flow's first path, for eviction
}

func (t *flowTable) addExport(max int, e *label.Export) {
	if max == 0 {
		return
	}
	w := t.paths[e.Key]
	if w == nil {
		if t.paths == nil {
			t.paths = map[model.FlowKey]*FlowPath{}
		}
		if len(t.order) == max {
			delete(t.paths, t.order[0])
			t.order = append(t.order[:0], t.order[1:]...)
		}
		w = &FlowPath{Flow: e.Key}
		t.paths[e.Key] = w
		t.order = append(t.order, e.Key)
	}
	w.Time, w.Hops = e.Time, w.Hops[:0]
	for i := e.Labels.Len() - 1; i >= 0; i-- {
		w.Hops = append(w.Hops, e.Labels.Item(i))
	}
}

// FlowPath returns the newest path of a followed flow. It is valid until the next
// IngestReport.
func (b *PortStates) FlowPath(key model.FlowKey) (*FlowPath, bool) {
	w, ok := b.flows.paths[key]
	return w, ok
}

// FollowedFlows returns the flows with a known path, ascending.
func (b *PortStates) FollowedFlows() []model.FlowKey {
	list := slices.Clone(b.flows.order)
	slices.SortFunc(list, model.FlowKey.Compare)
	return list
}
