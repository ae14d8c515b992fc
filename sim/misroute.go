package sim

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// diversion is where a fault sends a share of flows.
type diversion[T any] struct {
	seed  uint64
	share float64
	to    T
}

// diversions are the faults of one table or mux. They come and go on their own;
// of several that concern a flow the newest counts.
type diversions[T any] []*diversion[T]

// add puts one more in force and returns what ends it.
func (list *diversions[T]) add(d diversion[T]) (end func()) {
	*list = append(*list, &d)
	return func() {
		*list = slices.DeleteFunc(*list, func(other *diversion[T]) bool { return other == &d })
	}
}

// match says where a flow goes, if any of the faults concerns it.
func (list diversions[T]) match(key model.FlowKey) (to T, hit bool) {
	for _, d := range slices.Backward(list) {
		if float64(key.Hash(d.seed)>>11)/(1<<53) < d.share {
			return d.to, true
		}
	}
	return to, false
}
