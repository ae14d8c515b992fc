package coverage

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

// Way is what the labels of one packet of a followed flow tell, from the first
// switch to the last.
type Way struct {
	Flow model.FlowKey
	Time model.Time // when the last switch took the labels off, by its clock
	Hops []label.Item
}

// Sum is the time that the packet spent in switches.
func (w *Way) Sum() (d time.Duration) {
	for _, h := range w.Hops {
		d += h.Latency
	}
	return d
}

// flowTable keeps the newest way of followed flows, the most recent of them.
type flowTable struct {
	ways  map[model.FlowKey]*Way
	order []model.FlowKey // by arrival of the flow's first way, for eviction
}

func (t *flowTable) add(max int, e *label.Export) {
	if max == 0 {
		return
	}
	w := t.ways[e.Key]
	if w == nil {
		if t.ways == nil {
			t.ways = map[model.FlowKey]*Way{}
		}
		if len(t.order) == max {
			delete(t.ways, t.order[0])
			t.order = append(t.order[:0], t.order[1:]...)
		}
		w = &Way{Flow: e.Key}
		t.ways[e.Key] = w
		t.order = append(t.order, e.Key)
	}
	w.Time, w.Hops = e.Time, w.Hops[:0]
	for i := e.Labels.Len() - 1; i >= 0; i-- {
		w.Hops = append(w.Hops, e.Labels.Item(i))
	}
}

// Way returns the newest way of a followed flow. It is valid until the next
// Add.
func (b *Board) Way(key model.FlowKey) (*Way, bool) {
	w, ok := b.flows.ways[key]
	return w, ok
}

// Followed returns the flows of which a way is known, ascending.
func (b *Board) Followed() []model.FlowKey {
	list := slices.Clone(b.flows.order)
	slices.SortFunc(list, model.FlowKey.Compare)
	return list
}
