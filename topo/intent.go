package topo

import (
	"fmt"
	"slices"
	"sort"

	"github.com/weft-telemetry/weft/model"
)

// Intent is the history of the routes an operator intended. Analyses judge a
// packet by the routes of its time: a packet that followed yesterday's routes
// yesterday was not lost. What the switches really did is not here; see
// topo/fib.
//
// At may be called by many goroutines; Set needs the Intent for itself.
type Intent struct {
	steps []intentStep // ascending by from
}

type intentStep struct {
	from   model.Time
	routes *Routes
}

// NewIntent starts a history with routes that hold from the beginning of time.
func NewIntent(r *Routes) *Intent { return &Intent{steps: []intentStep{{routes: r}}} }

// Set states that routes hold from that instant on, in place of others from the
// same instant. Instants must not descend, and the fabric must stay the same.
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

// Between returns all routes that were intended at some instant of a span,
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

// Forget lets go of routes that were replaced before an instant, so that a history
// does not grow for ever. What was before is judged by the oldest that is left. As
// Set, it needs the Intent for itself.
func (in *Intent) Forget(before model.Time) {
	gone := 0
	for gone+1 < len(in.steps) && in.steps[gone+1].from < before {
		gone++
	}
	in.steps = slices.Delete(in.steps, 0, gone)
}
