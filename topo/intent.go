package topo

import (
	"fmt"
	"slices"
	"sort"

	"github.com/weft-telemetry/weft/model"
)

// Intent is the history of the routes an operator intended. Analyses compare a
// packet with the routes of its time: a packet that followed yesterday's routes
// yesterday was not misrouted. The actual forwarding state is in topo/fib.
//
// At may be called concurrently; Set needs exclusive access.
type Intent struct {
	steps []intentStep // ascending by from
}

type intentStep struct {
	from   model.Time
	routes *Routes
}

// NewIntent starts a history with routes that hold from the beginning of time.
func NewIntent(r *Routes) *Intent { return &Intent{steps: []intentStep{{routes: r}}} }

// Set makes r the intended routes from that instant on, replacing others from
// the same instant. Instants must not decrease, and the fabric must stay the
// same.
func (in *Intent) Set(from model.Time, r *Routes) error {
	last := in.steps[len(in.steps)-1]
	if len(in.steps) > 1 && from < last.from {
		return fmt.Errorf("intended routes from %v, want no instant before %v", from, last.from)
	}
	if r.Fabric() != last.routes.Fabric() {
		return fmt.Errorf("intended routes of fabric %q, want routes of %q", r.Fabric().Name(), last.routes.Fabric().Name())
	}
	if len(in.steps) > 1 && from == last.from {
		in.steps = in.steps[:len(in.steps)-1]
	}
	in.steps = append(in.steps, intentStep{from, r})
	return nil
}

// At returns the routes intended at an instant.
func (in *Intent) At(t model.Time) *Routes {
	after := sort.Search(len(in.steps)-1, func(i int) bool { return in.steps[i+1].from > t })
	return in.steps[after].routes
}

// Between returns all routes that were intended at some instant of a time range,
// both ends included, the oldest first.
func (in *Intent) Between(from, to model.Time) (list []*Routes) {
	for i, step := range in.steps {
		ended := i+1 < len(in.steps) && in.steps[i+1].from <= from
		if !ended && (i == 0 || step.from <= to) {
			list = append(list, step.routes)
		}
	}
	return list
}

// Forget discards routes that were replaced before an instant, so that a history
// does not grow without bound. Earlier instants then get the oldest routes left.
// Like Set, it needs exclusive access.
func (in *Intent) Forget(before model.Time) {
	gone := 0
	for gone+1 < len(in.steps) && in.steps[gone+1].from < before {
		gone++
	}
	in.steps = slices.Delete(in.steps, 0, gone)
}
