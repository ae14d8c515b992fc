package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/model"
)

// AddCounter is part of api.CounterAdmin.
func (f *Backend) AddCounter(ctx context.Context, r api.CounterRequest) (one api.Counter, err error) {
	asked := f.do(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, there := f.counters[r.Name]; there {
			err = fmt.Errorf("counter %q is there already: %w", r.Name, api.ErrConflict)
			return
		}
		switch err = f.c.traces.AddCounter(r.Name, r.Filter); {
		case errors.Is(err, tracewatch.ErrFull):
			err = fmt.Errorf("%w: %w", err, api.ErrBusy)
		case err != nil:
			err = fmt.Errorf("%w: %w", err, api.ErrInvalid)
		default:
			one = api.Counter{Name: r.Name, Filter: r.Filter, Created: f.c.wallTime(f.c.now)}
			f.counters[r.Name] = one
		}
	})
	if asked != nil {
		return one, asked
	}
	return one, err
}

// Counters is part of api.CounterAdmin: those of clients, with their last whole period.
func (f *Backend) Counters() []api.Counter {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []api.Counter{}
	for _, one := range f.counters {
		points, err := f.c.traces.GetCounter(one.Name, 0, model.Time(1<<62))
		if err == nil && len(points) > 0 {
			last := points[len(points)-1]
			one.PeriodNs, one.Packets, one.Bytes, one.Flows = int64(last.To.Sub(last.From)), last.Count, uint64(last.Bytes), last.Flows
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b api.Counter) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// RemoveCounter is part of api.CounterAdmin.
func (f *Backend) RemoveCounter(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, there := f.counters[name]; !there {
		return fmt.Errorf("counter %q: %w", name, api.ErrNotFound)
	}
	delete(f.counters, name)
	return f.c.traces.RemoveCounter(name)
}
