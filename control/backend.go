package control

import (
	"context"
	"sync"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// Backend is what API clients may do with a controller: probes, marks, counters,
// diagnoses. Many goroutines may call its methods; the controller is called in its
// own goroutine.
type Backend struct {
	c   *Controller
	do  func(ctx context.Context, f func()) error
	hub *api.EventHub

	mu         sync.Mutex
	next       int
	probes     []*api.Probe // oldest first, as marks and diagnosis requests
	marks      []*api.Mark
	markScopes map[*api.Mark]func(*trace.Trace) bool // of active marks and the newest ended ones
	requests   []*api.DiagnosisRequest
	counters   map[string]api.Counter
}

// maxListed is how many probes, marks and diagnosis requests are listed, the newest
// ones.
const maxListed = 100

// NewBackend makes the API backend of a controller. do runs a function in the
// controller's goroutine and waits for it; the hub publishes changes.
func NewBackend(c *Controller, do func(ctx context.Context, f func()) error, hub *api.EventHub) *Backend {
	f := &Backend{c: c, do: do, hub: hub, counters: map[string]api.Counter{}, markScopes: map[*api.Mark]func(*trace.Trace) bool{}}
	c.onVerdict, c.onMarkedTrace = f.addVerdict, f.countMarkedTrace
	return f
}

// pushNewest appends to a list of the newest ones.
func pushNewest[T any](list []*T, one *T) []*T {
	if len(list) == maxListed {
		list = append(list[:0], list[1:]...)
	}
	return append(list, one)
}

// newestFirst copies a list, the newest first.
func newestFirst[T any](f *Backend, list *[]*T) []T {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]T, 0, len(*list))
	for i := len(*list) - 1; i >= 0; i-- {
		out = append(out, *(*list)[i])
	}
	return out
}

// node finds a node by its name.
func (f *Backend) node(name string) (model.NodeID, bool) { return f.c.fabric.ByName(name) }
