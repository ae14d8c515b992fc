package api

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
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
			s.stream(r, w, in)
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
func (s *Server) stream(r *http.Request, w http.ResponseWriter, in *eventsInput) {
	c, missed, full := s.stateFeed.subscribe(in.Last)
	defer s.deps.Hub.unsubscribe(c)
	out := &eventWriter{
		w: w, rc: http.NewResponseController(w), timeout: s.cfg.WriteTimeout, types: in.Types,
		zip: acceptsGzip(r.Header.Get("Accept-Encoding")),
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // or buffering proxies delay events
	h.Set("Vary", "Accept-Encoding")
	if out.zip {
		h.Set("Content-Encoding", "gzip")
	}
	w.WriteHeader(http.StatusOK)
	out.begin()
	defer out.end()
	out.writeText("retry: 2000\n\n")
	if full != nil {
		if in.Last != "" {
			out.writeEvent(ResetEvent{Reason: "events after " + in.Last + " are no longer buffered"})
		}
		if out.wants(StateEvent{}.event()) {
			out.write(full.text())
		}
	}
	for _, m := range missed {
		out.writeMessage(m)
	}
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	for out.flush() == nil {
		select {
		case <-r.Context().Done():
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
