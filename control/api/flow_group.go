package api

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
)

// FlowGroup is the sums of a group of flows over a range.
type FlowGroup struct {
	Name        string   `json:"name" doc:"Of a host, rack, job, link, path or class; empty: the flows that have none"`
	Port        *PortRef `json:"port,omitempty" doc:"Egress port of a link; absent if parallel links lead to the next node"`
	Flows       uint64   `json:"flows"`
	Packets     uint64   `json:"packets"`
	Bytes       uint64   `json:"bytes"`
	RateBps     float64  `json:"rate_bps" doc:"Mean rate over the range"`
	LostPackets uint64   `json:"lost_packets"`
	Series      []uint64 `json:"series" doc:"Bytes by step"`
}

// FlowGroups are groups of flows, the largest first.
type FlowGroups struct {
	GroupBy  string      `json:"group_by"`
	From     time.Time   `json:"from"`
	To       time.Time   `json:"to"`
	StepNs   int64       `json:"step_ns" doc:"0: no series was asked for"`
	Items    []FlowGroup `json:"items"`
	Omitted  int         `json:"omitted" doc:"Groups beyond the top N"`
	Totals   FlowTotals  `json:"totals" doc:"Of all flows that match, each once"`
	Series   []uint64    `json:"series" doc:"Bytes of all flows that match, by step"`
	Partial  bool        `json:"partial,omitempty" doc:"Slots of the range had more flows than are stored"`
	Coverage Coverage    `json:"coverage"`
}

// FlowGroupsQuery selects groups of flows.
type FlowGroupsQuery struct {
	Range
	GroupBy string `query:"group_by" enum:"host,dst_host,rack,dst_rack,job,port,path,class" default:"host" doc:"host and rack: of the sender; dst_host and dst_rack: of the receiver; port: a flow counts at every egress port on its path; class: RoCEv2, tcp, udp or other"`
	Filter  string `query:"filter" maxLength:"1024" doc:"Only flows that match, as in /flows"`
	Node    string `query:"node" maxLength:"256" doc:"A switch on the path"`
	Sort    string `query:"sort" enum:"bytes,packets,lost" default:"bytes"`
	Top     int    `query:"top" minimum:"1" maximum:"1000" default:"10" doc:"Number of groups, the largest first"`
	Steps   int    `query:"steps" minimum:"0" maximum:"600" default:"0" doc:"Points of the series of each group; 0: none"`
}

func (s *Server) flowGroupRoutes() {
	get(s, "/flow-groups", "list-flow-groups", "Flows", "Flows of a time range by host, rack, job, port, path or class, with totals and series",
		coalesced(s, "list-flow-groups", s.flowGroups))
}

func (s *Server) flowGroups(ctx context.Context, in *FlowGroupsQuery) (g FlowGroups, err error) {
	q, err := s.query(in.Range, Paging{})
	if err != nil {
		return g, err
	}
	f, err := s.flowFilter(in.Filter)
	if err != nil {
		return g, err
	}
	fabric := s.deps.Live.Fabric()
	gq := record.FlowGroupQuery{
		From: q.From, To: q.To, Node: in.Node, Filter: f, Sort: record.FlowSort(cmp.Or(in.Sort, string(record.ByBytes))),
		GroupBy: record.FlowGrouping(cmp.Or(in.GroupBy, "host")), Limit: cmp.Or(in.Top, 10),
	}
	switch in.GroupBy {
	case "rack":
		gq.GroupBy, gq.Merge = record.GroupByHost, racks(fabric)
	case "dst_rack":
		gq.GroupBy, gq.Merge = record.GroupByDstHost, racks(fabric)
	case "port":
		gq.GroupBy = record.GroupByLink
	}
	if in.Steps > 0 {
		n := time.Duration(in.Steps)
		gq.Step = max((q.To.Sub(q.From)+n-1)/n, 1)
	}
	sums, err := s.deps.Records.FlowGroups(ctx, gq)
	if err != nil {
		return g, err
	}
	if err := s.checkNodeKnown(in.Node, int(sums.Totals.Slots)); err != nil {
		return g, err
	}
	g = FlowGroups{
		GroupBy: cmp.Or(in.GroupBy, "host"), From: q.From, To: q.To, StepNs: int64(gq.Step), Omitted: sums.Omitted,
		Totals: newFlowTotals(&sums.Totals), Series: sums.Series, Partial: sums.Partial, Items: make([]FlowGroup, 0, len(sums.Groups)),
	}
	for i := range sums.Groups {
		x := &sums.Groups[i]
		item := FlowGroup{
			Name: x.Name, Flows: x.Flows, Packets: x.Packets, Bytes: x.Bytes, LostPackets: x.Lost, Series: x.Series,
			RateBps: float64(x.Bytes) * 8 / q.To.Sub(q.From).Seconds(),
		}
		if gq.GroupBy == record.GroupByLink {
			item.Port = portOfLink(fabric, x.Name)
		}
		g.Items = append(g.Items, item)
	}
	g.Coverage, err = s.flowCoverage(ctx, q, sums.KeptFrom, sums.KeptTo)
	return g, err
}

// racks are the hosts by name, with the switch that each is at.
func racks(f *topo.Fabric) map[string]string {
	of := make(map[string]string, len(f.Hosts()))
	for _, id := range f.Hosts() {
		for _, p := range f.Node(id).Ports {
			if n := f.Node(p.Peer.Node); n.Role.IsSwitch() {
				of[f.Node(id).Name] = n.Name
				break
			}
		}
	}
	return of
}

// portOfLink returns the egress port of a link such as "tor0>leaf1"; nil if there is
// none, or several.
func portOfLink(f *topo.Fabric, name string) *PortRef {
	from, to, _ := strings.Cut(name, ">")
	id, ok := f.ByName(from)
	if !ok {
		return nil
	}
	var found *PortRef
	for _, p := range f.Node(id).Ports {
		if f.Node(p.Peer.Node).Name != to {
			continue
		}
		if found != nil {
			return nil
		}
		ref := newPortRef(f, model.Port{Node: id, Port: p.ID})
		found = &ref
	}
	return found
}
