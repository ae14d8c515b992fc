package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/model"
)

// AddCounter is part of api.CounterAdmin.
func (f *Backend) AddCounter(ctx context.Context, r api.CounterRequest) (one api.Counter, err error) {
	failed := f.do(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, exists := f.counters[r.Name]; exists {
			err = fmt.Errorf("counter %q exists already: %w", r.Name, api.ErrConflict)
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
	if failed != nil {
		return one, failed
	}
	return one, err
}

// Counters is part of api.CounterAdmin: custom counters with their newest complete
// period.
func (f *Backend) Counters() []api.Counter {
	f.mu.Lock()
	list := slices.AppendSeq([]api.Counter{}, maps.Values(f.counters))
	f.mu.Unlock() // a query may take a while
	for i := range list {
		one := &list[i]
		points, err := f.c.traces.QueryCounter(one.Name, 0, model.Time(1<<62))
		if err == nil && len(points) > 0 {
			last := points[len(points)-1]
			one.PeriodNs, one.CounterValue = int64(last.To.Sub(last.From)), counterValue(&last)
		}
	}
	slices.SortFunc(list, func(a, b api.Counter) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// counterValue describes what a counter counted in one period.
func counterValue(p *tracewatch.Point) api.CounterValue {
	return api.CounterValue{
		Packets: p.Count, Bytes: uint64(p.Bytes), Flows: p.Flows, MeanNs: int64(p.Mean), MinNs: int64(p.Min), MaxNs: int64(p.Max),
	}
}

// BuiltInCounters is part of api.CounterAdmin.
func (f *Backend) BuiltInCounters() []api.Counter {
	list := []api.Counter{}
	for _, name := range f.c.traces.Counters() {
		if !tracewatch.IsBuiltIn(name) {
			continue
		}
		points, err := f.c.traces.QueryCounter(name, 0, model.Time(1<<62))
		if err != nil || len(points) == 0 {
			continue
		}
		last := &points[len(points)-1]
		list = append(list, api.Counter{Name: name, PeriodNs: int64(last.To.Sub(last.From)), CounterValue: counterValue(last)})
	}
	return list
}

// BuiltInCounter is part of api.CounterAdmin.
func (f *Backend) BuiltInCounter(name string, from, to time.Time) ([]api.CounterPoint, error) {
	points, err := f.c.traces.QueryCounter(name, 0, model.Time(1<<62))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, api.ErrNotFound)
	}
	if !tracewatch.IsBuiltIn(name) { // a custom counter that was removed
		return nil, fmt.Errorf("counter %q: %w", name, api.ErrNotFound)
	}
	list := []api.CounterPoint{}
	for i := range points {
		p := &points[i]
		if at := f.c.wallTime(p.From); at.Before(to) && f.c.wallTime(p.To).After(from) {
			list = append(list, api.CounterPoint{Time: at, PeriodNs: int64(p.To.Sub(p.From)), CounterValue: counterValue(p)})
		}
	}
	return list, nil
}

// RemoveCounter is part of api.CounterAdmin.
func (f *Backend) RemoveCounter(_ context.Context, name string) error {
	f.mu.Lock()
	_, exists := f.counters[name]
	delete(f.counters, name)
	f.mu.Unlock()
	if !exists {
		return fmt.Errorf("counter %q: %w", name, api.ErrNotFound)
	}
	return f.c.traces.RemoveCounter(name)
}
