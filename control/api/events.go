package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
)

// eventTypes lists all event types in the order of the OpenAPI document.
var eventTypes = []Event{StateEvent{}, Incident{}, Health{}, Probe{}, Mark{}, Fault{}, Clock{}, ResetEvent{}}

type eventsInput struct {
	Types []string `query:"types" maxItems:"8" enum:"state,incident,health,probe,mark,fault,clock" doc:"Comma-separated event types; default: all"`
	Last  string   `header:"Last-Event-ID" maxLength:"64" doc:"Resume after this event, if it is still buffered"`
}

func (s *Server) eventRoutes() {
	op := s.operation(http.MethodGet, "/events", "get-events", "Events",
		"Server-sent events: the full state first, then changes")
	op.Description = "An event's name is its type; its data is JSON of the schema with that name. " +
		"Lines that begin with a colon are heartbeats. The server disconnects slow clients. A client resumes with " +
		"Last-Event-ID; a reset event reports that the missed events are no longer buffered."
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"text/event-stream": {Schema: s.eventSchema()},
	}}}
	huma.Register(s.api, op, func(_ context.Context, in *eventsInput) (*huma.StreamResponse, error) {
		select {
		case s.streams <- struct{}{}:
		default:
			s.metrics.refused.WithLabelValues("event clients").Inc()
			return nil, huma.NewError(http.StatusServiceUnavailable,
				fmt.Sprintf("the limit of %d event streams is reached; retry later", cap(s.streams)))
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			defer func() { <-s.streams }()
			r, w := humachi.Unwrap(c)
			s.stream(r.Context(), w, in)
		}}, nil
	})
}

// eventSchema describes the stream as an array of events.
func (s *Server) eventSchema() *huma.Schema {
	var kinds []*huma.Schema
	for _, e := range eventTypes {
		kinds = append(kinds, &huma.Schema{
			Title: "Event " + e.event(), Type: huma.TypeObject, Required: []string{"event", "data"},
			Properties: map[string]*huma.Schema{
				"id":    {Type: huma.TypeString},
				"event": {Type: huma.TypeString, Enum: []any{e.event()}},
				"data":  s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(e), true, ""),
			},
		})
	}
	return &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{OneOf: kinds}}
}

// stream writes events to one client until it disconnects, is too slow, or the
// server shuts down.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, in *eventsInput) {
	c, missed, full := s.stateFeed.subscribe(in.Last)
	defer s.deps.Hub.unsubscribe(c)
	out := &eventWriter{w: w, rc: http.NewResponseController(w), run: c.run, timeout: s.cfg.WriteTimeout, types: in.Types}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // or buffering proxies delay events
	w.WriteHeader(http.StatusOK)
	out.writeText("retry: 2000\n\n")
	if full != nil {
		if in.Last != "" {
			out.writeEvent(ResetEvent{Reason: "events after " + in.Last + " are no longer buffered"})
		}
		out.writeEvent(StateEvent{State: *full, Full: true})
	}
	for _, m := range missed {
		out.writeMessage(m)
	}
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	for out.flush() == nil {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			out.writeText(": heartbeat\n\n")
		case m, open := <-c.events:
			if !open {
				if c.slow {
					s.log.Info("event client disconnected: too slow")
				}
				return
			}
			out.writeMessage(m)
			for range len(c.events) { // flush queued events together
				m, open := <-c.events
				if !open {
					return
				}
				out.writeMessage(m)
			}
		}
	}
}

// eventWriter writes to one client. The first error is sticky.
type eventWriter struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	run     string
	timeout time.Duration
	types   []string
	err     error
}

func (o *eventWriter) writeText(s string) {
	if o.err == nil {
		o.err = o.rc.SetWriteDeadline(time.Now().Add(o.timeout))
	}
	if o.err == nil {
		_, o.err = o.w.Write([]byte(s))
	}
}

func (o *eventWriter) writeMessage(m message) {
	if len(o.types) > 0 && !slices.Contains(o.types, m.name) && m.name != "reset" {
		return
	}
	// Data is one line: encoded JSON has no line breaks.
	o.writeText(fmt.Sprintf("id: %s-%d\nevent: %s\ndata: %s\n\n", o.run, m.seq, m.name, m.data))
}

// writeEvent writes an event for this client only, without an id.
func (o *eventWriter) writeEvent(e Event) {
	if len(o.types) > 0 && !slices.Contains(o.types, e.event()) && e.event() != "reset" {
		return
	}
	o.writeText(fmt.Sprintf("event: %s\ndata: %s\n\n", e.event(), encodeEvent(e)))
}

func (o *eventWriter) flush() error {
	if o.err == nil {
		o.err = o.rc.Flush()
	}
	return o.err
}

// stateFeed publishes changes of the fabric's state while there are clients.
type stateFeed struct {
	live Live
	hub  *EventHub

	mu   sync.Mutex
	base *State    // the state that clients have; nil: no clients
	idle time.Time // when the last client left
}

// resumeWindow is how long changes are still published after the last client has
// left, so that it can reconnect and resume.
const resumeWindow = 30 * time.Second

// subscribe adds a client, which either resumes after its last event or starts
// with a full state. Nothing is published in between.
func (f *stateFeed) subscribe(last string) (c *client, missed []message, full *State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, missed, resumed := f.hub.subscribe(last)
	if f.base == nil {
		f.base = f.live.State()
		resumed = false
	}
	if resumed {
		return c, missed, nil
	}
	return c, nil, f.base
}

// tick publishes what has changed since the previous tick.
func (f *stateFeed) tick(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.base == nil {
		return
	}
	if clients, _, _ := f.hub.stats(); clients > 0 {
		f.idle = now
	} else if now.Sub(f.idle) > resumeWindow {
		f.base = nil
		f.hub.invalidateIDs() // later changes are in no event
		return
	}
	next := f.live.State()
	if next == f.base {
		return
	}
	d := StateEvent{State: State{Time: next.Time}}
	d.Nodes = changedItems(f.base.Nodes, next.Nodes, func(a, b NodeState) bool { return a == b })
	passed := float64(next.Time.Sub(f.base.Time)) / float64(time.Millisecond)
	d.Ports = changedItems(f.base.Ports, next.Ports,
		func(a, b PortState) bool { return a.withAge(passed) == b.withAge(0) })
	d.Full = len(f.base.Ports) != len(next.Ports) || len(f.base.Nodes) != len(next.Nodes)
	if d.Full {
		d.State = *next // the topology changed
	}
	f.base = next
	f.hub.Publish(d)
}

// changedItems returns the elements of b that differ from those of a.
func changedItems[T any](a, b []T, same func(a, b T) bool) []T {
	out := []T{}
	for i := range b {
		if i >= len(a) || !same(a[i], b[i]) {
			out = append(out, b[i])
		}
	}
	return out
}

// withAge returns the state of a port that has not reported for another ms
// milliseconds: only the age differs. Without this every port would change at
// every tick. Ages are rounded to 1 µs, so that sums of floats compare equal.
func (p PortState) withAge(ms float64) PortState {
	if p.AgeMs >= 0 {
		p.AgeMs = math.Round((p.AgeMs+ms)*1000) / 1000
	}
	return p
}
