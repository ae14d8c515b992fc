package api

import (
	"context"
	"fmt"
)

// Completion is something that could stand in a filter.
type Completion struct {
	Text  string `json:"text" doc:"What to put in"`
	From  int    `json:"from" doc:"Byte of the filter where it begins; what stands from there to the cursor is replaced"`
	Kind  string `json:"kind" enum:"field,operator,value,keyword"`
	About string `json:"about,omitempty"`
}

// FilterCheck says whether a filter is right and how it could go on.
type FilterCheck struct {
	Valid       bool         `json:"valid"`
	Error       string       `json:"error,omitempty" doc:"What is wrong, and where"`
	Completions []Completion `json:"completions"`
}

type completeInput struct {
	Text string `query:"text" maxLength:"1024"`
	At   int    `query:"at" minimum:"-1" maximum:"1024" default:"-1" doc:"Byte that the cursor stands before; -1: the end"`
}

// maxCompletions bounds an answer; nobody reads more.
const maxCompletions = 100

func (s *Server) filterRoutes() {
	get(s, "/filter/complete", "complete-filter", "Flows", "Check a filter and propose how it could go on",
		func(_ context.Context, in *completeInput) (FilterCheck, error) {
			if s.deps.Filters == nil {
				return FilterCheck{}, errNoFilters
			}
			if in.At < 0 || in.At > len(in.Text) {
				in.At = len(in.Text)
			}
			c := FilterCheck{Valid: true, Completions: s.deps.Filters.Complete(in.Text, in.At)}
			if len(c.Completions) > maxCompletions {
				c.Completions = c.Completions[:maxCompletions]
			}
			if in.Text != "" {
				if _, err := s.deps.Filters.Compile(in.Text); err != nil {
					c.Valid, c.Error = false, err.Error()
				}
			}
			return c, nil
		})
}

var errNoFilters = fmt.Errorf("filters: this controller has none: %w", ErrUnsupported)

// filter compiles what a client wrote; nil: nothing was.
func (s *Server) filter(text string) (Filter, error) {
	if text == "" {
		return nil, nil
	}
	if s.deps.Filters == nil {
		return nil, errNoFilters
	}
	f, err := s.deps.Filters.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("filter: %w: %w", err, ErrInvalid)
	}
	return f, nil
}
