package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-telemetry/weft/analyze/filter"
)

// FilterCheck says whether a filter is right and how it could go on.
type FilterCheck struct {
	Valid      bool              `json:"valid"`
	Error      *FilterError      `json:"error,omitempty"`
	From       int               `json:"from" doc:"Byte of the text where a candidate begins"`
	To         int               `json:"to" doc:"Byte behind what it takes the place of"`
	Candidates []FilterCandidate `json:"candidates" doc:"What could stand at the cursor, given what is before it"`
}

// FilterCandidate is something that could stand in a filter.
type FilterCandidate struct {
	Text  string `json:"text"`
	About string `json:"about,omitempty"`
}

// FilterError says what is wrong with a filter, and where.
type FilterError struct {
	Message string `json:"message"`
	At      int    `json:"at" doc:"First byte that is wrong"`
	End     int    `json:"end" doc:"Byte behind; the same where something is missing"`
}

type completeInput struct {
	Of   string `query:"of" enum:"flows,traces,packets" default:"flows" doc:"What the filter is for; packets: counters and marks"`
	Text string `query:"text" maxLength:"1024"`
	At   int    `query:"at" minimum:"-1" maximum:"1024" default:"-1" doc:"Byte that the cursor stands before; -1: the end"`
}

// maxCandidates bounds an answer; nobody reads more.
const maxCandidates = 200

func (s *Server) filterRoutes() {
	get(s, "/filter/complete", "complete-filter", "Flows", "Check a filter and propose how it could go on",
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

// completeFilter looks at a half-written filter.
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

// parseFilter compiles what a client wrote.
func parseFilter[T any](s *filter.Schema[T], text string) (*filter.Filter[T], error) {
	f, err := s.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrInvalid)
	}
	return f, nil
}
