package api

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// PostcardPath is what the switches on a packet's path said of it.
type PostcardPath struct {
	Hops     []PostcardHop // in order; the last is known
	Complete bool          // from the first switch to the one at the destination
}

// PostcardHop is one hop of a path, which is not Known if its postcard is missing.
type PostcardHop struct {
	Known bool
	keyed.Postcard
}

// Time is that of the first known hop.
func (p *PostcardPath) Time() model.Time {
	for i := range p.Hops {
		if p.Hops[i].Known {
			return p.Hops[i].Postcard.Time
		}
	}
	return 0
}

// FlowPostcards is the path and latency of packets of a flow, read from the collector's
// memory.
type FlowPostcards struct {
	FlowRef
	Time     time.Time        `json:"time" doc:"The fabric's time"`
	Samples  []PostcardSample `json:"samples" doc:"Packets of the flow, newest first; none: no switch chose one, or others overwrote them"`
	Found    int              `json:"found" doc:"Packets in memory, of which those above are the newest"`
	Complete int              `json:"complete" doc:"Those of them with all hops"`
	Mixed    int              `json:"mixed" doc:"Packets that are not shown, because their postcards met those of others"`
}

// PostcardSample is one packet of a flow.
type PostcardSample struct {
	Time      time.Time     `json:"time" doc:"When it left the first of the hops below that is known, within 1 ms, by that switch's clock"`
	AgeMs     float64       `json:"age_ms"`
	Complete  bool          `json:"complete" doc:"All hops from the first to the switch at the destination are known"`
	LatencyNs int64         `json:"latency_ns" doc:"Sum of the known hops, without the links between them"`
	Hops      []PostcardRow `json:"hops" doc:"In the order of the path. Hops after the last one that is known are not listed: see complete"`
}

// PostcardRow is one hop of a packet.
type PostcardRow struct {
	Hop        int    `json:"hop" doc:"From 0"`
	Missing    bool   `json:"missing" doc:"The packet passed a switch whose postcard did not arrive"`
	Switch     string `json:"switch,omitempty"`
	LatencyNs  int64  `json:"latency_ns" doc:"From arrival to departure, within 0.4 %"`
	QueueBytes int64  `json:"queue_bytes" doc:"In its queue when it was enqueued, within 0.4 %"`
}

type flowPostcardsInput struct {
	Key   string `path:"key" maxLength:"128" doc:"The flow's key, percent-encoded"`
	Limit int    `query:"limit" minimum:"1" maximum:"64" default:"4" doc:"Packets at most"`
}

func (s *Server) flowPostcards(_ context.Context, in *flowPostcardsInput) (out FlowPostcards, err error) {
	if s.deps.Memory == nil {
		return out, errNoKeyedMemory
	}
	key, err := flowKey(in.Key)
	if err != nil {
		return out, err
	}
	if key.IsZero() {
		return out, fmt.Errorf("flow %q, want a key such as tcp 10.0.0.2:40000 > 10.0.1.2:80: %w", in.Key, ErrInvalid)
	}
	out = FlowPostcards{FlowRef: s.flowRef(key), Time: s.deps.Live.Clock().Now}
	paths, mixed, err := s.deps.Memory.Postcards(&key, out.Time)
	if err != nil {
		return out, err
	}
	out.Found, out.Mixed = len(paths), mixed
	for i := range paths {
		if paths[i].Complete {
			out.Complete++
		}
		if i < in.Limit {
			out.Samples = append(out.Samples, s.newPostcardSample(&paths[i], out.Time))
		}
	}
	return out, nil
}

func (s *Server) newPostcardSample(p *PostcardPath, now time.Time) PostcardSample {
	f := s.deps.Live.Fabric()
	at := s.deps.Memory.WallTime(p.Time())
	one := PostcardSample{Time: at, AgeMs: float64(now.Sub(at)) / float64(time.Millisecond), Complete: p.Complete}
	for i := range p.Hops {
		card := &p.Hops[i].Postcard
		row := PostcardRow{Hop: i, Missing: !p.Hops[i].Known || !f.HasNode(card.Switch)}
		if !row.Missing {
			row.Switch, row.LatencyNs, row.QueueBytes = f.Node(card.Switch).Name, int64(card.Latency), int64(card.Queue)
			one.LatencyNs += row.LatencyNs
		}
		one.Hops = append(one.Hops, row)
	}
	return one
}
