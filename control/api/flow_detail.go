package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// Bounds of the lists in a FlowDetail.
const (
	maxFlowPoints = 500
	maxFlowEvents = 100
)

// getFlow collects the records of one flow, of all kinds.
func (s *Server) getFlow(ctx context.Context, in *flowInput) (d FlowDetail, err error) {
	q, err := s.query(in.Range, Paging{})
	if err != nil {
		return d, err
	}
	if q.Flow, err = flowKey(in.Key); err != nil {
		return d, err
	}
	if q.Flow.IsZero() {
		return d, fmt.Errorf("flow %q, want a key such as tcp 10.0.0.2:40000 > 10.0.1.2:80: %w", in.Key, ErrInvalid)
	}
	d = FlowDetail{
		Series: []FlowPoint{}, Hops: []FlowHop{}, Losses: []FlowLoss{}, Traces: []TraceSummary{}, Diagnoses: []Diagnosis{},
	}
	sums := newFlowSums(s)
	slots := q
	slots.Limit = maxFlowPoints
	next, _, err := walkRecords(ctx, s, s.deps.Records.Flows, slots, func(r *record.FlowSlot) bool {
		sums.addSlot(r)
		d.Series = append(d.Series, newFlowPoint(r))
		return len(d.Series) < maxFlowPoints
	})
	if err != nil {
		return d, err
	}
	d.Complete = next == ""
	slices.Reverse(d.Series)
	if len(sums.flows) > 0 {
		d.addHops(sums.flows[0].Path)
	}
	if err := s.flowEvents(ctx, q, &d, sums); err != nil {
		return d, err
	}
	if len(sums.flows) == 0 {
		// Every valid key is a flow: this one has no records in the range.
		d.Flow = Flow{FlowRef: s.flowRef(q.Flow), First: q.From, Last: q.To, Path: []string{}}
		return d, nil
	}
	d.Flow = sums.withRates()[0]
	return d, s.hopStates(ctx, &d)
}

func newFlowPoint(r *record.FlowSlot) FlowPoint {
	p := FlowPoint{
		Time: r.Time, SlotNs: int64(r.Slot), Packets: r.Packets, Bytes: r.Bytes, Exact: r.Exact, Samples: r.Samples,
		Path: make([]FlowPointHop, 0, len(r.Path)),
	}
	for _, h := range r.Path {
		p.Path = append(p.Path, FlowPointHop{Switch: h.Switch, Packets: h.Packets})
	}
	return p
}

// addHops sums the counts of all slots over the switches of the flow's path.
func (d *FlowDetail) addHops(path []string) {
	for _, name := range path {
		d.Hops = append(d.Hops, FlowHop{Switch: name})
	}
	for i := range d.Series {
		for _, h := range d.Series[i].Path {
			if at := slices.IndexFunc(d.Hops, func(x FlowHop) bool { return x.Switch == h.Switch }); at >= 0 {
				d.Hops[at].Packets += h.Packets
			}
		}
	}
}

// flowEvents reads the losses, traces and diagnoses of a flow.
func (s *Server) flowEvents(ctx context.Context, q record.Query, d *FlowDetail, sums *flowSums) error {
	_, _, err := walkRecords(ctx, s, s.deps.Records.Losses, q, func(l *record.Loss) bool {
		sums.addLoss(l)
		if i := slices.IndexFunc(d.Hops, func(h FlowHop) bool { return h.Switch == l.From }); i >= 0 {
			d.Hops[i].LostPackets += l.Packets
		}
		if len(d.Losses) < maxFlowEvents {
			d.Losses = append(d.Losses, FlowLoss{
				Time: l.Time, From: l.From, To: l.To, Packets: l.Packets, Sent: l.Sent,
				Pattern: l.Pattern,
			})
		} else {
			d.Complete = false
		}
		return true
	})
	if err != nil {
		return err
	}
	q.Limit = maxFlowEvents
	traces, err := s.deps.Records.Traces(ctx, q)
	if err != nil {
		return err
	}
	for i := range traces.Items {
		d.Traces = append(d.Traces, s.newTraceSummary(&traces.Items[i]))
	}
	diagnoses, err := s.deps.Records.Diagnoses(ctx, q)
	if err != nil {
		return err
	}
	for i := range diagnoses.Items {
		d.Diagnoses = append(d.Diagnoses, s.newDiagnosis(&diagnoses.Items[i]))
	}
	d.Complete = d.Complete && traces.Next == "" && diagnoses.Next == ""
	return nil
}

// hopStates adds what the egress ports on the path were like while the flow was active
// in the range: the largest queue and latency, and the mean share of time paused.
func (s *Server) hopStates(ctx context.Context, d *FlowDetail) error {
	f := s.deps.Live.Fabric()
	for i := range d.Hops {
		h := &d.Hops[i]
		to := d.Dst
		if i+1 < len(d.Hops) {
			to = d.Hops[i+1].Switch
		}
		out := outPort(f, h.Switch, to)
		if out == 0 {
			continue
		}
		h.Out = &out
		page, err := s.deps.Records.Ports(ctx, record.Query{From: d.First, To: d.Last.Add(1), Node: h.Switch, Port: out, Limit: maxFlowPoints})
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			continue
		}
		var latency, queue int64
		var paused float64
		for i := range page.Items {
			p := &page.Items[i]
			latency, queue, paused = max(latency, int64(p.Latency)), max(queue, int64(p.Queue)), paused+p.Paused
		}
		paused /= float64(len(page.Items))
		h.LatencyNs, h.QueueBytes, h.PausedShare = &latency, &queue, &paused
	}
	return nil
}

// outPort returns the port from one node to another, or 0 if there is not exactly one.
func outPort(f *topo.Fabric, from, to string) model.PortID {
	a, ok1 := f.ByName(from)
	b, ok2 := f.ByName(to)
	if !ok1 || !ok2 {
		return 0
	}
	if ports := f.Node(a).PortsTo(b); len(ports) == 1 {
		return ports[0]
	}
	return 0
}
