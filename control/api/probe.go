package api

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// ProbeRequest asks for guided probes: packets let loose at a switch and
// followed.
type ProbeRequest struct {
	Kind       string        `json:"kind" enum:"flow,pattern,link" doc:"flow: packets with a flow's headers; pattern: as flow with many source ports, to see which are lost; link: there and back over a link"`
	Flow       model.FlowKey `json:"flow,omitzero" doc:"Of a flow or pattern probe, as in: udp 10.0.0.2:4791 > 10.1.0.2:4791"`
	At         string        `json:"at,omitempty" maxLength:"256" doc:"Of a pattern probe: switch to begin at; where absent the flow's first"`
	Link       *PortRef      `json:"link,omitempty" doc:"Of a link probe: the port towards it"`
	Count      int           `json:"count,omitempty" minimum:"1" maximum:"1000" default:"10" doc:"Packets; of a pattern probe: source ports"`
	IntervalUs int           `json:"spaced_us,omitempty" minimum:"0" maximum:"1000000" default:"100" doc:"Time between two, by the fabric's clock"`
}

// Probe is a probe and what has come of it.
type Probe struct {
	ID       string         `json:"id"`
	State    string         `json:"state" enum:"waiting,running,done,failed"`
	Request  ProbeRequest   `json:"request"`
	Begin    time.Time      `json:"begin"`
	End      *time.Time     `json:"end,omitempty" doc:"Absent while it runs"`
	Sent     int            `json:"sent"`
	Arrived  int            `json:"arrived"`
	Hops     []ProbeHop     `json:"hops" doc:"In the order of the way"`
	Patterns []ProbePattern `json:"patterns" doc:"Of a pattern probe"`
	RTT      *ProbeRTT      `json:"rtt,omitempty" doc:"Of a link probe"`
	LostAt   *PortRef       `json:"lost_at,omitempty" doc:"Behind which packets were not seen again"`
	Verdict  string         `json:"verdict,omitempty" doc:"What it shows, for people"`
	Error    string         `json:"error,omitempty" doc:"Why it failed"`
	Traces   []string       `json:"traces" doc:"Ids"`
	Incident string         `json:"incident_id,omitempty" doc:"That the controller started it for"`
}

// ProbeHop is how many packets a switch saw.
type ProbeHop struct {
	Switch    string `json:"switch"`
	Packets   int    `json:"packets"`
	LatencyNs int64  `json:"latency_ns" doc:"From the probe's first switch, by two clocks, in the mean"`
}

// ProbePattern is what came of one 5-tuple.
type ProbePattern struct {
	Flow    model.FlowKey `json:"flow"`
	Sent    int           `json:"sent"`
	Arrived int           `json:"arrived"`
}

// ProbeRTT is the time there and back over a link.
type ProbeRTT struct {
	MinNs  int64 `json:"min_ns"`
	MeanNs int64 `json:"mean_ns"`
	MaxNs  int64 `json:"max_ns"`
}

// completeFilter says what is missing for the request's kind.
func (r *ProbeRequest) check() error {
	switch {
	case r.Kind == "link" && r.Link == nil:
		return fmt.Errorf("link probe without a link, want {node, port}: %w", ErrInvalid)
	case r.Kind != "link" && r.Flow.IsZero():
		return fmt.Errorf("%s probe without a flow, want its key: %w", r.Kind, ErrInvalid)
	}
	return nil
}

var errNoProber = fmt.Errorf("probes: this controller cannot send any: %w", ErrUnsupported)

func (s *Server) probeRoutes() {
	get(s, "/probes", "list-probes", "Probes and marks", "Probes, newest first",
		func(context.Context, *struct{}) (Page[Probe], error) {
			if s.deps.Prober == nil {
				return Page[Probe]{}, errNoProber
			}
			return Page[Probe]{Items: s.deps.Prober.Probes()}, nil
		})
	get(s, "/probes/{id}", "get-probe", "Probes and marks", "One probe and what has come of it",
		func(_ context.Context, in *idInput) (Probe, error) {
			if s.deps.Prober == nil {
				return Probe{}, errNoProber
			}
			return s.deps.Prober.Probe(in.ID)
		})
	type startInput struct{ Body ProbeRequest }
	post(s, "/probes", "start-probe", "Probes and marks", "Send guided probes",
		func(ctx context.Context, in *startInput) (Probe, error) {
			if s.deps.Prober == nil {
				return Probe{}, errNoProber
			}
			if err := in.Body.check(); err != nil {
				return Probe{}, err
			}
			return s.deps.Prober.StartProbe(ctx, in.Body)
		})
}
