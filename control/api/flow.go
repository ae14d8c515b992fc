package api

import (
	"cmp"
	"context"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Flow sums a flow over a range.
type Flow struct {
	FlowRef
	First       time.Time `json:"first" doc:"Start of the first slot with packets; start of the range if slots is 0"`
	Last        time.Time `json:"last" doc:"End of the last slot with packets; end of the range if slots is 0"`
	Slots       int       `json:"slots" doc:"Slots with packets"`
	Packets     uint64    `json:"packets"`
	Bytes       uint64    `json:"bytes"`
	RateBps     float64   `json:"rate_bps" doc:"Mean rate from first to last"`
	LostPackets uint64    `json:"lost_packets"`
	Exact       bool      `json:"exact" doc:"All counters were decoded exactly, not estimated"`
	Samples     uint64    `json:"samples,omitempty" doc:"Packet samples that the counters are estimated from; absent: they are not from samples"`
	Error       float64   `json:"error,omitempty" doc:"Relative error of packets and bytes at 95 % confidence, where they are from samples"`
	Path        []string  `json:"path" doc:"Switches of the newest slot, in path order"`
}

// FlowPage is a page of flows, in the order of their sums over the whole range.
type FlowPage struct {
	Page[Flow]
	CoveredFrom time.Time  `json:"covered_from" doc:"Start of the range that the sums are of; see coverage for what of it is stored"`
	CoveredTo   time.Time  `json:"covered_to"`
	Partial     bool       `json:"partial,omitempty" doc:"Slots of the range had more flows than are stored; the others are in the counters of reduced flows"`
	Totals      FlowTotals `json:"totals" doc:"Of all flows that match, on this page and the others"`
	Coverage    Coverage   `json:"coverage"`
}

// FlowTotals are the sums of all flows that match.
type FlowTotals struct {
	Flows       *uint64 `json:"flows,omitempty" doc:"Absent if they were not counted: the largest losses are found without it"`
	Slots       uint64  `json:"slots" doc:"Slots of all flows: records"`
	Packets     uint64  `json:"packets"`
	Bytes       uint64  `json:"bytes"`
	LostPackets uint64  `json:"lost_packets"`
}

func newFlowTotals(t *record.FlowTotals) FlowTotals {
	out := FlowTotals{Slots: t.Slots, Packets: t.Packets, Bytes: t.Bytes, LostPackets: t.Lost}
	if t.FlowsKnown {
		out.Flows = &t.Flows
	}
	return out
}

// FlowDetail has all records of one flow in a range.
type FlowDetail struct {
	Flow
	Hops      []FlowHop      `json:"hops" doc:"In path order, as of the newest slot"`
	Series    []FlowPoint    `json:"series" doc:"Oldest first"`
	Losses    []FlowLoss     `json:"losses" doc:"Newest first"`
	Traces    []TraceSummary `json:"traces" doc:"Newest first"`
	Diagnoses []Diagnosis    `json:"diagnoses" doc:"Diagnoses with this flow as the victim, newest first"`
	Complete  bool           `json:"complete" doc:"The whole range is covered"`
}

// FlowHop is a flow at one switch of its path.
type FlowHop struct {
	Switch      string        `json:"switch"`
	Out         *model.PortID `json:"out_port,omitempty" doc:"Egress port; absent if parallel links lead to the next hop"`
	Packets     uint64        `json:"packets" doc:"Counted at this switch in the range"`
	LostPackets uint64        `json:"lost_packets" doc:"Lost between this switch and the next hop in the range"`
	LatencyNs   *int64        `json:"latency_ns,omitempty" doc:"Largest switch latency at the egress port while the flow was active in the range; absent if unknown"`
	QueueBytes  *int64        `json:"queue_bytes,omitempty" doc:"Largest queue of the egress port in that time"`
	PausedShare *float64      `json:"paused_share,omitempty" doc:"Share of that time in which the egress port was paused"`
}

// FlowPoint is one slot of a flow.
type FlowPoint struct {
	Time    time.Time      `json:"time"`
	SlotNs  int64          `json:"slot_ns"`
	Packets uint64         `json:"packets"`
	Bytes   uint64         `json:"bytes"`
	Exact   bool           `json:"exact"`
	Samples uint64         `json:"samples,omitempty" doc:"Packet samples that the counters are estimated from"`
	Path    []FlowPointHop `json:"path" doc:"Switches of the slot, in path order"`
}

// FlowPointHop is what one switch counted in one slot.
type FlowPointHop struct {
	Switch  string `json:"switch"`
	Packets uint64 `json:"packets"`
}

// FlowLoss is one flow's packet loss between two switches in one slot.
type FlowLoss struct {
	Time    time.Time `json:"time"`
	From    string    `json:"from"`
	To      string    `json:"to,omitempty" doc:"Absent if the next hop is unknown"`
	Packets uint64    `json:"packets"`
	Sent    uint64    `json:"sent"`
	Pattern string    `json:"pattern"`
}

// FlowsQuery selects flows.
type FlowsQuery struct {
	Range
	Paging
	Filter string `query:"filter" maxLength:"1024" doc:"E.g. ip.src == 10.0.0.0/24 && flow.lost > 0"`
	Node   string `query:"node" maxLength:"256" doc:"A switch on the path: sums of the slots in which it was, and of the losses before and after it"`
	Sort   string `query:"sort" enum:"bytes,packets,lost,lost_share,rate,duration,newest" default:"bytes"`
}

type flowInput struct {
	Range
	Key string `path:"key" maxLength:"128" doc:"The flow's key, percent-encoded"`
}

func (s *Server) flowRoutes() {
	get(s, "/flows", "list-flows", "Flows", "List flows of a time range, summed over its slots",
		coalesced(s, "list-flows", s.listFlows))
	get(s, "/flows/{key}", "get-flow", "Flows",
		"One flow: path, counters and latency per hop, losses, traces, diagnoses", coalesced(s, "get-flow", s.getFlow))
}

// listFlows returns flows in the order of their sums over the whole range. The store
// adds up, filters and sorts; a page is a part of that order.
func (s *Server) listFlows(ctx context.Context, in *FlowsQuery) (p FlowPage, err error) {
	q, err := s.query(in.Range, in.Paging)
	if err != nil {
		return p, err
	}
	f, err := s.flowFilter(in.Filter)
	if err != nil {
		return p, err
	}
	sums, err := s.deps.Records.FlowSums(ctx, record.FlowSumQuery{
		From: q.From, To: q.To, Node: in.Node, Filter: f, Sort: record.FlowSort(cmp.Or(in.Sort, string(record.ByBytes))),
		Limit: q.Limit, After: q.After,
	})
	if err != nil {
		return p, err
	}
	if err := s.checkNodeKnown(in.Node, int(sums.Totals.Slots)); err != nil {
		return p, err
	}
	p.CoveredFrom, p.CoveredTo, p.Partial = q.From, q.To, sums.Partial
	p.Items, p.Next = make([]Flow, 0, len(sums.Items)), encodeCursor(q, sums.Next)
	for i := range sums.Items {
		p.Items = append(p.Items, newFlow(&sums.Items[i]))
	}
	p.Totals, p.Scanned = newFlowTotals(&sums.Totals), int(sums.Totals.Slots)
	p.Coverage, err = s.flowCoverage(ctx, q, sums.KeptFrom, sums.KeptTo)
	return p, err
}

// flowFilter compiles a filter of flows; an error is ErrInvalid.
func (s *Server) flowFilter(text string) (record.FlowFilter, error) {
	fabric := s.currentFabric()
	f, err := parseFilter(fabric.flows, text)
	if err != nil {
		return record.FlowFilter{}, err
	}
	return record.FlowFilter{Text: f.String(), Where: f.Condition(), Match: f.Match, Jobs: fabric.jobs}, nil
}

func newFlow(r *record.FlowSum) Flow {
	return Flow{
		FlowRef: FlowRef{Flow: r.Flow, Src: r.Src, Dst: r.Dst}, First: r.First, Last: r.Last,
		Slots: int(r.Slots), Packets: r.Packets, Bytes: r.Bytes, RateBps: r.Rate(), LostPackets: r.Lost, Exact: r.Exact,
		Samples: r.Samples, Error: record.SampledError(r.Samples), Path: append([]string{}, r.Path...),
	}
}

// flowSums sums flow slots by flow key.
type flowSums struct {
	s     *Server
	index map[model.FlowKey]int
	flows []Flow
}

func newFlowSums(s *Server) *flowSums {
	return &flowSums{s: s, index: map[model.FlowKey]int{}, flows: []Flow{}}
}

// addSlot adds a slot. Slots must come newest first.
func (m *flowSums) addSlot(r *record.FlowSlot) {
	i, known := m.index[r.Flow]
	if !known {
		i = len(m.flows)
		m.index[r.Flow] = i
		f := Flow{
			FlowRef: FlowRef{Flow: r.Flow, Src: r.Src, Dst: r.Dst},
			Last:    r.Time.Add(r.Slot), Exact: true, Path: switchNames(r.Path),
		}
		m.flows = append(m.flows, f)
	}
	f := &m.flows[i]
	// The last slot of a flow may have a few late packets, seen by switches whose
	// clocks are behind: then the slot before it has the path.
	if f.Slots == 1 && len(r.Path) > len(f.Path) && r.Packets > 4*f.Packets {
		f.Path = switchNames(r.Path)
	}
	f.First = r.Time
	f.Slots++
	f.Packets += r.Packets
	f.Bytes += r.Bytes
	f.Exact = f.Exact && r.Exact
	f.Samples += r.Samples
	f.Error = record.SampledError(f.Samples)
}

// switchNames returns the switches of a path.
func switchNames(path []record.FlowHop) []string {
	names := make([]string, 0, len(path))
	for _, h := range path {
		names = append(names, h.Switch)
	}
	return names
}

func (m *flowSums) addLoss(l *record.Loss) {
	if i, known := m.index[l.Flow]; known {
		m.flows[i].LostPackets += l.Packets
	}
}

// withRates computes rates and returns the flows.
func (m *flowSums) withRates() []Flow {
	for i := range m.flows {
		f := &m.flows[i]
		if d := f.Last.Sub(f.First); d > 0 {
			f.RateBps = float64(f.Bytes) * 8 / d.Seconds()
		}
	}
	return m.flows
}
