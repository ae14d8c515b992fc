package api

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Flow sums a flow over the covered part of the range.
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
	Path        []string  `json:"path" doc:"Switches of the newest slot, in path order"`
}

// FlowPage is a page of flows and the part of the range that it covers.
type FlowPage struct {
	Page[Flow]
	CoveredFrom time.Time `json:"covered_from" doc:"Start of the part of the range that this page covers; next continues with older records"`
	CoveredTo   time.Time `json:"covered_to"`
	Partial     bool      `json:"partial,omitempty" doc:"Slots of this page had more flows than are stored; the others are in the counters of reduced flows"`
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
	LatencyNs   *int64        `json:"latency_ns,omitempty" doc:"Switch latency at the egress port, newest sample; absent if unknown"`
	QueueBytes  *int64        `json:"queue_bytes,omitempty" doc:"Queue of the egress port, newest sample"`
	PausedShare *float64      `json:"paused_share,omitempty" doc:"Share of time the egress port was paused, newest sample"`
}

// FlowPoint is one slot of a flow.
type FlowPoint struct {
	Time    time.Time      `json:"time"`
	SlotNs  int64          `json:"slot_ns"`
	Packets uint64         `json:"packets"`
	Bytes   uint64         `json:"bytes"`
	Exact   bool           `json:"exact"`
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
	Filter string `query:"filter" maxLength:"1024" doc:"E.g. ip.src == 10.0.0.0/24 && udp.dstport == 4791"`
	Node   string `query:"node" maxLength:"256" doc:"A switch on the path"`
	Sort   string `query:"sort" enum:"bytes,packets,lost,newest" default:"bytes"`
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

// maxFlows bounds the flows of one response.
const maxFlows = 5000

// listFlows sums the newest records of the range, up to the scan budget. A page
// covers one interval of time and has its flows, the largest first, up to the
// limit. The next page covers the interval before it.
func (s *Server) listFlows(ctx context.Context, in *FlowsQuery) (p FlowPage, err error) {
	q, err := s.query(in.Range, in.Paging)
	if err != nil {
		return p, err
	}
	f, err := parseFilter(s.currentFabric().flows, in.Filter)
	if err != nil {
		return p, err
	}
	q.Node, q.Ends, q.Limit = in.Node, requiredEnds(f), maxChunk
	p.CoveredFrom, p.CoveredTo = q.From, q.To
	sums := newFlowSums(s)
	p.Next, p.Scanned, err = walkRecords(ctx, s, s.deps.Records.Flows, q, func(r *record.FlowSlot) bool {
		if f.Match(r) {
			sums.addSlot(r)
		}
		p.Partial = p.Partial || r.Partial
		p.CoveredFrom = r.Time
		return len(sums.flows) < maxFlows
	})
	if err != nil {
		return p, err
	}
	if err := s.checkNodeKnown(in.Node, p.Scanned); err != nil {
		return p, err
	}
	if p.Next == "" {
		p.CoveredFrom = q.From
	}
	p.Next = encodeCursor(q, p.Next)
	lq := record.Query{From: p.CoveredFrom, To: p.CoveredTo, Node: in.Node, Ends: q.Ends}
	if _, _, err = walkRecords(ctx, s, s.deps.Records.Losses, lq, func(l *record.Loss) bool {
		sums.addLoss(l)
		return true
	}); err != nil {
		return p, err
	}
	p.Items = sums.sorted(in.Sort)
	if len(p.Items) > in.Limit {
		p.Omitted = len(p.Items) - in.Limit
		p.Items = p.Items[:in.Limit]
	}
	return p, nil
}

// requiredEnds returns the addresses and ports that every match of the filter has.
// The store then skips all other flows, so that one response covers more time.
func requiredEnds(f *filter.Filter[record.FlowSlot]) (e record.FlowEnds) {
	for _, version := range []string{"ip", "ipv6"} {
		if v, ok := f.RequiredValue(version + ".src"); ok {
			e.Src = v.Addr
		}
		if v, ok := f.RequiredValue(version + ".dst"); ok {
			e.Dst = v.Addr
		}
	}
	for _, proto := range []string{"tcp", "udp"} {
		if v, ok := f.RequiredValue(proto + ".srcport"); ok {
			e.SrcPort = uint16(v.Int)
		}
		if v, ok := f.RequiredValue(proto + ".dstport"); ok {
			e.DstPort = uint16(v.Int)
		}
	}
	return e
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

// sorted computes rates and returns the flows in the requested order.
func (m *flowSums) sorted(by string) []Flow {
	for i := range m.flows {
		f := &m.flows[i]
		if d := f.Last.Sub(f.First); d > 0 {
			f.RateBps = float64(f.Bytes) * 8 / d.Seconds()
		}
	}
	slices.SortStableFunc(m.flows, func(a, b Flow) int {
		switch by {
		case "packets":
			return cmp.Compare(b.Packets, a.Packets)
		case "lost":
			return cmp.Compare(b.LostPackets, a.LostPackets)
		case "newest":
			return b.Last.Compare(a.Last)
		}
		return cmp.Compare(b.Bytes, a.Bytes)
	})
	return m.flows
}
