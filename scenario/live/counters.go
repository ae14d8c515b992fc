package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/tracewatch"
)

// counters are what clients count in mirrored packets.
type counters struct {
	s    *System
	mu   sync.Mutex
	made map[string]api.Counter
}

func (s *System) meter() *counters { return &counters{s: s, made: map[string]api.Counter{}} }

// AddCounter is part of api.Meter.
func (c *counters) AddCounter(_ context.Context, r api.CounterRequest) (api.Counter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.made[r.Name]; there {
		return api.Counter{}, fmt.Errorf("counter %q is there already: %w", r.Name, api.ErrConflict)
	}
	switch err := c.s.lab.Control.Traces().AddCounter(r.Name, r.Filter); {
	case errors.Is(err, tracewatch.ErrFull):
		return api.Counter{}, fmt.Errorf("%w: %w", err, api.ErrBusy)
	case err != nil:
		return api.Counter{}, fmt.Errorf("%w: %w", err, api.ErrInvalid)
	}
	one := api.Counter{Name: r.Name, Filter: r.Filter, Created: c.s.time(c.s.player.Now())}
	c.made[r.Name] = one
	return one, nil
}

// Counters is part of api.Meter.
func (c *counters) Counters() []api.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []api.Counter{}
	now := c.s.player.Now()
	for _, one := range c.made {
		if points, err := c.s.lab.Control.Traces().GetCounter(one.Name, now.Add(-time.Second), now); err == nil && len(points) > 0 {
			last := points[len(points)-1]
			one.PeriodNs, one.Packets, one.Bytes, one.Flows = int64(last.To.Sub(last.From)), last.Count, uint64(last.Bytes), last.Flows
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b api.Counter) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// RemoveCounter is part of api.Meter.
func (c *counters) RemoveCounter(_ context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.made[name]; !there {
		return fmt.Errorf("counter %q: %w", name, api.ErrNotFound)
	}
	delete(c.made, name)
	return c.s.lab.Control.Traces().RemoveCounter(name)
}
