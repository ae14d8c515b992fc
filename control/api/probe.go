package api

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// ProbeRequest describes guided probes: packets that are injected at a switch and
// traced.
type ProbeRequest struct {
	Kind       string        `json:"kind" enum:"flow,pattern,link,format" doc:"flow: packets with the headers of a flow; pattern: the same with varied headers, to find which are lost; link: round trip over a link; format: custom packets"`
	Flow       model.FlowKey `json:"flow,omitzero" doc:"Flow and pattern probes, e.g. udp 10.0.0.2:4791 > 10.1.0.2:4791"`
	At         string        `json:"at,omitempty" maxLength:"256" doc:"Pattern probes: first switch; default: the first switch of the flow"`
	Link       *PortRef      `json:"link,omitempty" doc:"Link probes: the port towards the link, by node and port number or interface name"`
	Format     string        `json:"format,omitempty" maxLength:"1024" doc:"Format probes: header fields, e.g. ip.src == h0 && ip.dst == h9 && udp.dstport == 9; lists of addresses are tunnels, outermost first"`
	Count      int           `json:"count,omitempty" minimum:"1" maximum:"1000" default:"10" doc:"Number of packets; pattern probes: number of source ports"`
	IntervalUs int           `json:"interval_us,omitempty" minimum:"0" maximum:"1000000" default:"100" doc:"Time between packets, by the fabric's clock"`
}

// Probe is a probe and its result so far.
type Probe struct {
	ID         string         `json:"id"`
	State      string         `json:"state" enum:"waiting,running,done,failed"`
	Request    ProbeRequest   `json:"request"`
	Begin      time.Time      `json:"begin"`
	End        *time.Time     `json:"end,omitempty" doc:"Absent while it runs"`
	Sent       int            `json:"sent"`
	Arrived    int            `json:"arrived"`
	Lost       int            `json:"lost" doc:"Dropped or looped, by their traces"`
	Unheard    int            `json:"unheard" doc:"Without a trace so far: in flight, or their mirrors were lost"`
	Outcome    string         `json:"outcome,omitempty" enum:"passed,persistent,random,blackhole,selective,loop,unreached" doc:"Pattern probes: which packets are lost. Persistent: all; random: some of all patterns; blackhole: all of certain patterns; selective: some of certain patterns"`
	InjectedAt string         `json:"injected_at,omitempty" doc:"Pattern probes: switch at which probes were injected"`
	Loss       *ShareInterval `json:"loss,omitempty" doc:"Pattern probes: share of probes that were lost"`
	// MirrorLoss is what Loss must exceed to be a loss of packets.
	MirrorLoss *ShareInterval `json:"mirror_loss,omitempty" doc:"Pattern probes: share of mirrors that were lost"`
	Loop       []string       `json:"loop,omitempty" doc:"Switches of a forwarding loop"`
	Hops       []ProbeHop     `json:"hops" doc:"In path order"`
	Patterns   []ProbePattern `json:"patterns" doc:"Pattern probes"`
	RTT        *ProbeRTT      `json:"rtt,omitempty" doc:"Link probes"`
	LostAt     *PortRef       `json:"lost_at,omitempty" doc:"Port after which packets were lost"`
	Verdict    string         `json:"verdict,omitempty" doc:"Result, as text"`
	Error      string         `json:"error,omitempty" doc:"Why it failed"`
	Traces     []string       `json:"traces" doc:"Ids"`
	Incident   string         `json:"incident_id,omitempty" doc:"Incident for which the controller started it"`
}

// ProbeHop counts the packets that a switch saw.
type ProbeHop struct {
	Switch    string `json:"switch"`
	Packets   int    `json:"packets"`
	LatencyNs int64  `json:"latency_ns" doc:"Mean latency from the first switch, by the clocks of both"`
}

// ProbePattern is the result of one 5-tuple.
type ProbePattern struct {
	Flow    model.FlowKey `json:"flow"`
	Varied  string        `json:"varied,omitempty" doc:"Header field that differs from the flow's"`
	Sent    int           `json:"sent"`
	Arrived int           `json:"arrived"`
	Reached int           `json:"reached" doc:"Probes that reached the switch at which they were injected"`
	Loss    ShareInterval `json:"loss" doc:"Share of these that were lost"`
}

// ShareInterval is an estimated share with its 95 % confidence interval.
type ShareInterval struct {
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// ProbeRTT is the round-trip time over a link.
type ProbeRTT struct {
	MinNs    int64 `json:"min_ns"`
	MedianNs int64 `json:"median_ns"`
	MeanNs   int64 `json:"mean_ns"`
	ErrorNs  int64 `json:"error_ns" doc:"Standard error of the mean"`
	P90Ns    int64 `json:"p90_ns"`
}

// check returns an error if a field that the probe's kind needs is missing, and
// completes the link's port.
func (r *ProbeRequest) check(f *topo.Fabric) error {
	switch {
	case r.Kind == "link" && r.Link == nil:
		return fmt.Errorf("link probe without a link, want node and port or interface: %w", ErrInvalid)
	case r.Kind == "format" && r.Format == "":
		return fmt.Errorf("format probe without a format, want header fields such as ip.src == h0 && ip.dst == h9: %w",
			ErrInvalid)
	case r.Kind != "link" && r.Kind != "format" && r.Flow.IsZero():
		return fmt.Errorf("%s probe without a flow, want its key: %w", r.Kind, ErrInvalid)
	}
	if r.Kind == "link" {
		at, err := r.Link.resolvePort(f)
		if err != nil {
			return fmt.Errorf("link probe: %w: %w", err, ErrInvalid)
		}
		*r.Link = newPortRef(f, at)
	}
	return nil
}

var errNoProber = fmt.Errorf("probes: this controller cannot send probes: %w", ErrUnsupported)

func (s *Server) probeRoutes() {
	get(s, "/probes", "list-probes", "Probes and marks", "List probes, newest first",
		func(context.Context, *struct{}) (Page[Probe], error) {
			if s.deps.Prober == nil {
				return Page[Probe]{}, errNoProber
			}
			return Page[Probe]{Items: s.deps.Prober.Probes()}, nil
		})
	get(s, "/probes/{id}", "get-probe", "Probes and marks", "One probe and its result so far",
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
			if err := in.Body.check(s.deps.Live.Fabric()); err != nil {
				return Probe{}, err
			}
			return s.deps.Prober.StartProbe(ctx, in.Body)
		})
}
