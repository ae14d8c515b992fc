package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-telemetry/weft/analyze/filter"
)

// FilterCheck is the result of parsing a filter, with completions.
type FilterCheck struct {
	Valid      bool              `json:"valid"`
	Error      *FilterError      `json:"error,omitempty"`
	From       int               `json:"from" doc:"Byte offset at which a candidate is inserted"`
	To         int               `json:"to" doc:"Byte offset after the text that a candidate replaces"`
	Candidates []FilterCandidate `json:"candidates" doc:"Completions at the cursor"`
}

// FilterCandidate is one completion.
type FilterCandidate struct {
	Text  string `json:"text"`
	About string `json:"about,omitempty"`
}

// FilterError is a syntax error of a filter and its position.
type FilterError struct {
	Message string `json:"message"`
	At      int    `json:"at" doc:"Byte offset of the error"`
	End     int    `json:"end" doc:"Byte offset after the error; equal to at where something is missing"`
}

type completeInput struct {
	Of   string `query:"of" enum:"flows,traces,packets" default:"flows" doc:"Filter language; packets is for counters and marks"`
	Text string `query:"text" maxLength:"1024"`
	At   int    `query:"at" minimum:"-1" maximum:"1024" default:"-1" doc:"Byte offset of the cursor; -1: the end"`
}

// maxCandidates bounds a response.
const maxCandidates = 200

func (s *Server) filterRoutes() {
	get(s, "/filter/complete", "complete-filter", "Flows", "Parse a filter and return completions",
		func(_ context.Context, in *completeInput) (FilterCheck, error) {
			f := s.currentFabric()
			switch in.Of {
			case "traces":
				return completeFilter(f.traces, in), nil
			case "packets":
				return completeFilter(f.packets, in), nil
			}
			return completeFilter(f.flows, in), nil
		})
}

// completeFilter parses a partial filter and returns its error and completions.
func completeFilter[T any](s *filter.Schema[T], in *completeInput) FilterCheck {
	if in.At < 0 || in.At > len(in.Text) {
		in.At = len(in.Text)
	}
	at := s.Complete(in.Text, in.At)
	c := FilterCheck{Valid: true, From: at.From, To: at.To, Candidates: []FilterCandidate{}}
	for _, x := range at.Candidates[:min(len(at.Candidates), maxCandidates)] {
		c.Candidates = append(c.Candidates, FilterCandidate(x))
	}
	_, err := s.Parse(in.Text)
	var wrong *filter.Error
	if errors.As(err, &wrong) {
		c.Valid, c.Error = false, &FilterError{Message: wrong.Error(), At: wrong.At, End: wrong.End}
	}
	return c
}

// parseFilter compiles a client's filter; an error is ErrInvalid.
func parseFilter[T any](s *filter.Schema[T], text string) (*filter.Filter[T], error) {
	f, err := s.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrInvalid)
	}
	return f, nil
}
