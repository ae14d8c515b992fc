package sim

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// diversion sends a share of flows elsewhere.
type diversion[T any] struct {
	seed  uint64
	share float64
	to    T
}

// diversions are the faults of one table or mux. They start and end
// independently; the newest that matches a flow applies.
type diversions[T any] []*diversion[T]

// add activates a fault and returns a function that ends it.
func (list *diversions[T]) add(d diversion[T]) (end func()) {
	*list = append(*list, &d)
	return func() {
		*list = slices.DeleteFunc(*list, func(other *diversion[T]) bool { return other == &d })
	}
}

// match returns where the faults send a flow, if one matches it.
func (list diversions[T]) match(key model.FlowKey) (to T, hit bool) {
	for _, d := range slices.Backward(list) {
		if float64(key.Hash(d.seed)>>11)/(1<<53) < d.share {
			return d.to, true
		}
	}
	return to, false
}
