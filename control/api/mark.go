package api

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// MarkRequest describes a debug mark: hosts mark packets, and every switch mirrors
// marked packets.
type MarkRequest struct {
	Flow       model.FlowKey `json:"flow,omitzero" doc:"Flow to mark; exactly one of flow, host and filter"`
	Host       string        `json:"host,omitempty" maxLength:"256" doc:"Mark all packets that this host sends"`
	Filter     string        `json:"filter,omitempty" maxLength:"1024" doc:"Mark packets that match"`
	Hosts      []string      `json:"hosts,omitempty" nullable:"false" maxItems:"1000" doc:"With filter: only these hosts mark packets; default: all hosts"`
	DurationMs int           `json:"duration_ms,omitempty" minimum:"1" maximum:"3600000" default:"1000" doc:"Duration in the fabric's time"`
}

// Mark is a debug mark.
type Mark struct {
	ID       string      `json:"id"`
	Request  MarkRequest `json:"request"`
	State    string      `json:"state" enum:"active,ended"`
	Begin    time.Time   `json:"begin"`
	End      time.Time   `json:"end" doc:"Scheduled or actual end"`
	Traces   uint64      `json:"traces" doc:"Traces assembled from the mirrored packets"`
	Incident string      `json:"incident_id,omitempty" doc:"Incident for which the controller set it"`
}

func (r *MarkRequest) check(s *Server) error {
	n := 0
	for _, set := range []bool{!r.Flow.IsZero(), r.Host != "", r.Filter != ""} {
		if set {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("mark with %d of flow, host and filter, want exactly one: %w", n, ErrInvalid)
	}
	if len(r.Hosts) > 0 && r.Filter == "" {
		return fmt.Errorf("mark with hosts but without a filter, want host: %w", ErrInvalid)
	}
	hosts := r.Hosts
	if r.Host != "" {
		hosts = []string{r.Host}
	}
	for _, name := range hosts {
		if _, ok := s.deps.Live.Fabric().ByName(name); !ok {
			return fmt.Errorf("host %q: %w", name, ErrNotFound)
		}
	}
	_, err := parseFilter(s.currentFabric().packets, r.Filter)
	return err
}

var errNoMarker = fmt.Errorf("marks: this controller cannot set debug marks: %w", ErrUnsupported)

func (s *Server) markRoutes() {
	get(s, "/marks", "list-marks", "Probes and marks", "List debug marks, newest first",
		func(context.Context, *struct{}) (Page[Mark], error) {
			if s.deps.Marker == nil {
				return Page[Mark]{}, errNoMarker
			}
			return Page[Mark]{Items: s.deps.Marker.Marks()}, nil
		})
	type setInput struct{ Body MarkRequest }
	post(s, "/marks", "set-mark", "Probes and marks", "Mark packets so that every switch mirrors them",
		func(ctx context.Context, in *setInput) (Mark, error) {
			if s.deps.Marker == nil {
				return Mark{}, errNoMarker
			}
			if err := in.Body.check(s); err != nil {
				return Mark{}, err
			}
			return s.deps.Marker.SetMark(ctx, in.Body)
		})
	del(s, "/marks/{id}", "remove-mark", "Probes and marks", "Remove a debug mark",
		func(ctx context.Context, in *idInput) error {
			if s.deps.Marker == nil {
				return errNoMarker
			}
			return s.deps.Marker.RemoveMark(ctx, in.ID)
		})
}
