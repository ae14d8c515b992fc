package live

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
)

// marks are the debug marks that clients set. Each ends by itself.
type marks struct {
	s    *System
	mu   sync.Mutex
	next int
	list []*api.Mark // oldest first
}

func (s *System) marker() *marks { return &marks{s: s} }

// keptMarks is how many marks are remembered, the newest ones.
const keptMarks = 100

// SetMark is part of api.Marker.
func (m *marks) SetMark(ctx context.Context, r api.MarkRequest) (out api.Mark, err error) {
	servers, text, err := m.target(&r)
	if err != nil {
		return out, err
	}
	last := time.Duration(r.DurationMs) * time.Millisecond
	asked := m.s.player.Do(ctx, func() {
		if err = m.s.lab.Control.Traces().EnableDbg(servers, text); err != nil {
			err = fmt.Errorf("%w: %w", err, api.ErrInvalid)
			return
		}
		now := m.s.lab.Now()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.next++
		one := &api.Mark{ID: strconv.Itoa(m.next), Request: r, State: "active", Begin: m.s.time(now), End: m.s.time(now.Add(last))}
		if len(m.list) == keptMarks {
			m.list = slices.Delete(m.list, 0, 1)
		}
		m.list = append(m.list, one)
		out = *one
		m.s.lab.at(now.Add(last), func() { _ = m.end(one, servers, text) })
	})
	if asked != nil {
		return out, asked
	}
	return out, err
}

// target is the hosts and the filter that a request means.
func (m *marks) target(r *api.MarkRequest) (servers []string, text string, err error) {
	switch {
	case r.Host != "":
		return []string{r.Host}, "", nil
	case r.Filter != "":
		return nil, r.Filter, nil
	}
	k := r.Flow
	if id, ok := m.s.Fabric().ByAddr(k.Src); ok {
		servers = []string{m.s.Fabric().Node(id).Name}
	}
	return servers, control.FilterOf(k), nil
}

// end takes a mark back, once. It runs between two steps.
func (m *marks) end(one *api.Mark, servers []string, text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one.State == "ended" {
		return nil
	}
	one.State, one.End = "ended", m.s.time(m.s.lab.Now())
	return m.s.lab.Control.Traces().DisableDbg(servers, text)
}

// Marks is part of api.Marker.
func (m *marks) Marks() []api.Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []api.Mark{}
	for _, one := range slices.Backward(m.list) {
		out = append(out, *one)
	}
	return out
}

// RemoveMark is part of api.Marker.
func (m *marks) RemoveMark(ctx context.Context, id string) (err error) {
	m.mu.Lock()
	i := slices.IndexFunc(m.list, func(one *api.Mark) bool { return one.ID == id })
	if i < 0 {
		m.mu.Unlock()
		return fmt.Errorf("mark %q: %w", id, api.ErrNotFound)
	}
	one := m.list[i]
	m.mu.Unlock()
	servers, text, err := m.target(&one.Request)
	if err != nil {
		return err
	}
	asked := m.s.player.Do(ctx, func() { err = m.end(one, servers, text) })
	if asked != nil {
		return asked
	}
	return err
}
