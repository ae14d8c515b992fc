package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/analyze/filter/headers"
	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// SetMark is part of api.Marker. A mark ends after its duration.
func (f *Backend) SetMark(ctx context.Context, r api.MarkRequest) (out api.Mark, err error) {
	servers, text := f.markScope(&r)
	last := time.Duration(r.DurationMs) * time.Millisecond
	failed := f.do(ctx, func() {
		if err = f.c.traces.EnableDebug(servers, text); err != nil {
			err = commandError(err)
			return
		}
		f.mu.Lock()
		f.next++
		one := &api.Mark{ID: "m" + strconv.Itoa(f.next), Request: r, State: "active", Begin: f.c.wallTime(f.c.now), End: f.c.wallTime(f.c.now.Add(last))}
		f.marks = pushNewest(f.marks, one)
		f.trackMark(one, servers, text)
		out = *one
		f.mu.Unlock()
		f.c.scheduleAfter(last, func() { _ = f.endMark(one, servers, text) })
		f.hub.Publish(out)
	})
	if failed != nil {
		return out, failed
	}
	return out, err
}

// trackMark counts the traces of a mark from now on. The lock is held.
func (f *Backend) trackMark(one *api.Mark, servers []string, text string) {
	packets, err := f.c.traces.PacketSchema().Parse(text)
	if err != nil {
		return // EnableDebug has accepted it
	}
	var senders []model.Addr
	for _, name := range servers {
		if id, ok := f.node(name); ok {
			senders = append(senders, f.c.fabric.Node(id).IPv4, f.c.fabric.Node(id).IPv6)
		}
	}
	maps.DeleteFunc(f.markScopes, func(m *api.Mark, _ func(*trace.Trace) bool) bool { return !slices.Contains(f.marks, m) })
	var frame headers.Frame
	f.markScopes[one] = func(t *trace.Trace) bool {
		if senders != nil && !slices.Contains(senders, t.Key.Src) {
			return false
		}
		frame.Read(t.Frame, len(t.Frame))
		return packets.Match(&frame)
	}
}

// countMarkedTrace adds a trace of a marked packet to the marks that it matches. It
// runs in the controller's goroutine.
func (f *Backend) countMarkedTrace(t *trace.Trace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one, matches := range f.markScopes {
		if matches(t) {
			one.Traces++
		}
	}
}

// markScope returns the hosts and the filter of a request.
func (f *Backend) markScope(r *api.MarkRequest) (servers []string, text string) {
	switch {
	case r.Host != "":
		return []string{r.Host}, ""
	case r.Filter != "":
		return r.Hosts, r.Filter
	}
	if id, ok := f.c.fabric.ByAddr(r.Flow.Src); ok {
		servers = []string{f.c.nodeName(id)}
	}
	return servers, filterOf(r.Flow)
}

// endMark removes a mark, once. It runs in the controller's goroutine.
func (f *Backend) endMark(one *api.Mark, servers []string, text string) error {
	f.mu.Lock()
	if one.State == "ended" {
		f.mu.Unlock()
		return nil
	}
	one.State, one.End = "ended", f.c.wallTime(f.c.now)
	ended := *one
	f.mu.Unlock()
	f.hub.Publish(ended)
	return f.c.traces.DisableDebug(servers, text)
}

// Marks is part of api.Marker.
func (f *Backend) Marks() []api.Mark { return newestFirst(f, &f.marks) }

// RemoveMark is part of api.Marker.
func (f *Backend) RemoveMark(ctx context.Context, id string) (err error) {
	f.mu.Lock()
	i := slices.IndexFunc(f.marks, func(one *api.Mark) bool { return one.ID == id })
	if i < 0 {
		f.mu.Unlock()
		return fmt.Errorf("mark %q: %w", id, api.ErrNotFound)
	}
	one := f.marks[i]
	f.mu.Unlock()
	servers, text := f.markScope(&one.Request)
	if failed := f.do(ctx, func() { err = f.endMark(one, servers, text) }); failed != nil {
		return failed
	}
	return err
}
