package control

import (
	"context"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// silentDevices do nothing.
type silentDevices struct{ Devices }

// TestMarkedTraceWaitsForNoQuery: a query of counters holds the backend's lock and
// wants that of the trace watch. A marked packet's trace, which comes while the
// trace watch is locked, must not want the backend's; it is counted afterwards.
func TestMarkedTraceWaitsForNoQuery(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(DefaultConfig(topo.NewIntent(routes)), silentDevices{}, Output{})
	if err != nil {
		t.Fatal(err)
	}
	call := func(_ context.Context, f func()) error { f(); return nil }
	b := NewBackend(c, call, api.NewEventHub(1, 1))
	mark := &api.Mark{}
	b.markScopes[mark] = func(*trace.Trace) bool { return true }

	b.mu.Lock() // as a query does
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.traceRecord(&trace.Trace{Why: mirror.Debug, Hops: []trace.Hop{{}}})
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the trace waits for the backend, whose query waits for the trace watch")
	}
	b.mu.Unlock()
	c.publishChanges()
	c.publishChanges()
	if mark.Traces != 1 {
		t.Errorf("%d traces of the mark; want 1", mark.Traces)
	}
}
