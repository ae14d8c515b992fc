package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// PortCounters is what reports say of a port in a range, in the order of a switch's own
// commands: queue watermark, PFC by priority, losses, ECN.
type PortCounters struct {
	PortRef
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	QueueMaxBytes int64   `json:"queue_max_bytes" doc:"Deepest queue of all samples (queue watermark)"`
	LatencyMaxNs  int64   `json:"latency_max_ns" doc:"Largest switch latency of all samples"`
	PausedShare   float64 `json:"paused_share" doc:"Mean share of time paused by PFC"`
	Samples       uint64  `json:"samples"`

	Queues []QueueCounters `json:"queues" doc:"By priority, from the switch reports of diagnoses in the range; empty if no poll reached the switch"`
	Losses []PortLoss      `json:"losses" doc:"Lost on the link, by pattern, largest first"`

	TracedPackets int  `json:"traced_packets" doc:"Mirrored packets that left by this port"`
	MarkedPackets int  `json:"marked_packets" doc:"Of these, with ECN congestion experienced"`
	Complete      bool `json:"complete" doc:"All records of the range were read; otherwise only the newest"`
}

// QueueCounters is one priority of a port, the largest values of the reports.
type QueueCounters struct {
	Priority      model.Priority `json:"priority"`
	Reports       int            `json:"reports"`
	PauseFrames   uint64         `json:"pause_frames" doc:"Received (PFC rx)"`
	Packets       uint64         `json:"packets"`
	PausedPackets uint64         `json:"paused_packets" doc:"That found the queue paused"`
	DepthPackets  float64        `json:"depth_packets" doc:"Mean depth at enqueue"`
}

// PortLoss is the losses of a port's link of one pattern.
type PortLoss struct {
	Pattern string `json:"pattern"`
	Packets uint64 `json:"packets"`
	Flows   int    `json:"flows"`
}

// Bounds of the records that a PortCounters is made of.
const (
	maxPortDiagnoses = 50
	maxPortTraces    = 500
)

func (s *Server) portCounters(ctx context.Context, in *portInput) (c PortCounters, err error) {
	q, err := s.query(in.Range, Paging{})
	if err != nil {
		return c, err
	}
	f := s.deps.Live.Fabric()
	at, err := findPort(f, in.Node, in.Port)
	if err != nil {
		return c, fmt.Errorf("%w: %w", err, ErrNotFound)
	}
	c = PortCounters{PortRef: newPortRef(f, at), From: q.From, To: q.To, Queues: []QueueCounters{}, Losses: []PortLoss{}, Complete: true}
	for _, add := range []func(context.Context, record.Query, *PortCounters) error{s.addPortSamples, s.addPortLosses, s.addPortQueues, s.addPortTraces} {
		if err := add(ctx, q, &c); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (s *Server) addPortSamples(ctx context.Context, q record.Query, c *PortCounters) error {
	q.Node, q.Port = c.Node, c.Port
	if span := q.To.Sub(q.From); span > time.Minute {
		q.Step = span / 600
	}
	var paused float64
	next, _, err := walkRecords(ctx, s, s.deps.Records.Ports, q, func(r *record.PortSample) bool {
		n := max(r.Samples, 1)
		c.QueueMaxBytes = max(c.QueueMaxBytes, int64(r.Queue), int64(r.QueueMax))
		c.LatencyMaxNs = max(c.LatencyMaxNs, int64(r.Latency))
		c.Samples, paused = c.Samples+n, paused+r.Paused*float64(n)
		return true
	})
	if c.Samples > 0 {
		c.PausedShare = paused / float64(c.Samples)
	}
	c.Complete = c.Complete && next == ""
	return err
}

func (s *Server) addPortLosses(ctx context.Context, q record.Query, c *PortCounters) error {
	q.Node = c.Node
	f := s.deps.Live.Fabric()
	packets, flows := map[string]uint64{}, map[string]map[model.FlowKey]bool{}
	next, _, err := walkRecords(ctx, s, s.deps.Records.Losses, q, func(l *record.Loss) bool {
		if l.From == c.Node && outPort(f, l.From, l.To) == c.Port {
			packets[l.Pattern] += l.Packets
			if flows[l.Pattern] == nil {
				flows[l.Pattern] = map[model.FlowKey]bool{}
			}
			flows[l.Pattern][l.Flow] = true
		}
		return true
	})
	for pattern, n := range packets {
		c.Losses = append(c.Losses, PortLoss{Pattern: pattern, Packets: n, Flows: len(flows[pattern])})
	}
	slices.SortFunc(c.Losses, func(a, b PortLoss) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.Pattern, b.Pattern))
	})
	c.Complete = c.Complete && next == ""
	return err
}

// addPortQueues reads the provenance graphs of the range: their ports are the queues
// that switches reported when they were polled.
func (s *Server) addPortQueues(ctx context.Context, q record.Query, c *PortCounters) error {
	q.Limit = maxPortDiagnoses
	page, err := s.deps.Records.Diagnoses(ctx, q)
	if err != nil {
		return err
	}
	c.Complete = c.Complete && page.Next == ""
	for i := range page.Items {
		var body DiagnosisBody
		if json.Unmarshal(page.Items[i].Body, &body) != nil {
			continue // the diagnosis itself says so when it is read
		}
		for _, p := range body.Graph.Ports {
			if p.Node == c.Node && p.Port == c.Port {
				c.addQueue(&p)
			}
		}
	}
	slices.SortFunc(c.Queues, func(a, b QueueCounters) int { return cmp.Compare(a.Priority, b.Priority) })
	return nil
}

func (c *PortCounters) addQueue(p *GraphPort) {
	i := slices.IndexFunc(c.Queues, func(x QueueCounters) bool { return x.Priority == p.Priority })
	if i < 0 {
		i = len(c.Queues)
		c.Queues = append(c.Queues, QueueCounters{Priority: p.Priority})
	}
	x := &c.Queues[i]
	x.Reports++
	x.PauseFrames, x.Packets = max(x.PauseFrames, p.PauseFrames), max(x.Packets, p.Packets)
	x.PausedPackets, x.DepthPackets = max(x.PausedPackets, p.PausedPackets), max(x.DepthPackets, p.DepthPackets)
}

// congestionExperienced is the ECN field of a marked packet (RFC 3168).
const congestionExperienced = 3

func (s *Server) addPortTraces(ctx context.Context, q record.Query, c *PortCounters) error {
	q.Node, q.Limit = c.Node, maxPortTraces
	page, err := s.deps.Records.Traces(ctx, q)
	if err != nil {
		return err
	}
	c.Complete = c.Complete && page.Next == ""
	for i := range page.Items {
		for _, h := range page.Items[i].Hops {
			if h.Switch != c.Node || h.Out != c.Port {
				continue
			}
			c.TracedPackets++
			if h.ECN == congestionExperienced {
				c.MarkedPackets++
			}
		}
	}
	return nil
}
