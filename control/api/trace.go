package api

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dissect"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// TraceSummary is the summary of a packet trace.
type TraceSummary struct {
	ID          string    `json:"id"`
	Time        time.Time `json:"time" doc:"Time at the first hop"`
	Flow        FlowRef   `json:"flow"`
	Packet      string    `json:"packet,omitempty" doc:"What the packet is, if it belongs to no flow, e.g. PFC pause of priority 3"`
	End         string    `json:"end" enum:"unknown,arrived,lost,looped,unsettled" doc:"How the trace ended; lost: last seen before the destination"`
	Why         string    `json:"why" doc:"Why the packet was mirrored"`
	LatencyNs   int64     `json:"latency_ns" doc:"From first to last hop, by the clocks of both switches"`
	LostMirrors int       `json:"lost_mirrors" doc:"Mirrored copies known to be missing"`
	Path        []string  `json:"path" doc:"Switches, in path order"`
	Fields      []string  `json:"fields,omitempty" doc:"Values of the requested filter fields, in their order"`
}

// Trace is the path of one packet, hop by hop.
type Trace struct {
	TraceSummary
	Hops   []TraceHop   `json:"hops"`
	Frame  []byte       `json:"frame,omitempty" doc:"First bytes of the packet, as mirrored by the first switch"`
	Layers []TraceLayer `json:"layers" doc:"Headers of the frame, outermost first, and the payload; together they cover the whole frame"`
}

// TraceLayer is one header of a traced packet.
type TraceLayer struct {
	Name    string       `json:"name" doc:"E.g. IPv4"`
	Offset  int          `json:"offset" doc:"Byte offset in the frame"`
	Bytes   int          `json:"bytes"`
	Fields  []TraceField `json:"fields"`
	Problem string       `json:"problem,omitempty" doc:"Why it could not be decoded"`
}

// TraceField is one field of a header.
type TraceField struct {
	Name   string `json:"name"`
	Value  string `json:"value" doc:"As text"`
	Offset int    `json:"offset" doc:"Byte offset in the frame of the first byte that contains part of the field"`
	Bytes  int    `json:"bytes"`
}

// TraceHop is a packet as one switch saw it.
type TraceHop struct {
	Time    time.Time    `json:"time" doc:"By the switch's clock"`
	SinceNs int64        `json:"since_previous_ns" doc:"Time since the previous hop, by the clocks of both switches; 0 at the first hop"`
	Switch  string       `json:"switch"`
	In      model.PortID `json:"in_port,omitempty" doc:"Ingress port; absent if unknown"`
	Out     model.PortID `json:"out_port,omitempty" doc:"Egress port; absent if unknown"`
	// Names of these ports.
	InInterface  string `json:"in_interface,omitempty" doc:"Interface name of the ingress port, e.g. Ethernet8"`
	OutInterface string `json:"out_interface,omitempty" doc:"Interface name of the egress port"`
	TTL          uint8  `json:"ttl"`
	DSCP         uint8  `json:"dscp"`
	ECN          uint8  `json:"ecn"`
	Depth        uint8  `json:"ip_headers" doc:"Number of IP headers; more than one inside a tunnel"`
}

func (s *Server) newTraceSummary(r *record.Trace) TraceSummary {
	t := TraceSummary{
		ID: strconv.FormatUint(r.ID, 10), Time: r.Time, Flow: s.flowRef(r.Flow), End: r.End, Why: r.Why,
		LatencyNs: int64(r.Latency), LostMirrors: r.LostMirrors, Path: make([]string, 0, len(r.Hops)),
	}
	for i := range r.Hops {
		t.Path = append(t.Path, r.Hops[i].Switch)
	}
	t.Packet = controlPacket(r)
	return t
}

// controlPacket names a packet that has no IP header.
func controlPacket(r *record.Trace) string {
	if !r.Flow.IsZero() || len(r.Frame) == 0 {
		return ""
	}
	var f pfc.Frame
	if _, err := f.Parse(r.Frame); err == nil {
		return f.String()
	}
	if len(r.Frame) < 14 {
		return "frame of an unknown type"
	}
	return fmt.Sprintf("frame of EtherType %#04x", binary.BigEndian.Uint16(r.Frame[12:]))
}

func (s *Server) newTrace(r *record.Trace) Trace {
	t := Trace{TraceSummary: s.newTraceSummary(r), Hops: make([]TraceHop, 0, len(r.Hops)), Frame: r.Frame}
	for i := range r.Hops {
		h := &r.Hops[i]
		hop := TraceHop{
			Time: h.Time, Switch: h.Switch, In: h.In, Out: h.Out, TTL: h.TTL, DSCP: h.DSCP, ECN: h.ECN, Depth: h.Depth,
		}
		hop.InInterface, hop.OutInterface = s.interfaceName(h.Switch, h.In), s.interfaceName(h.Switch, h.Out)
		if i > 0 {
			hop.SinceNs = int64(h.Time.Sub(r.Hops[i-1].Time))
		}
		t.Hops = append(t.Hops, hop)
	}
	if len(r.Frame) > 0 {
		t.Layers = newTraceLayers(r.Frame)
	}
	return t
}

// interfaceName returns the name of a switch's port; empty if the fabric has none.
func (s *Server) interfaceName(node string, port model.PortID) string {
	f := s.deps.Live.Fabric()
	id, known := f.ByName(node)
	if !known || port == 0 || int(port) > len(f.Node(id).Ports) {
		return ""
	}
	return f.Port(model.Port{Node: id, Port: port}).Name
}

func newTraceLayers(frame []byte) (list []TraceLayer) {
	for _, l := range dissect.Frame(frame) {
		layer := TraceLayer{Name: l.Name, Offset: l.Offset, Bytes: l.Size, Problem: l.Problem}
		for _, f := range l.Fields {
			layer.Fields = append(layer.Fields, TraceField{Name: f.Name, Value: f.Value, Offset: f.Offset, Bytes: f.Size})
		}
		list = append(list, layer)
	}
	return list
}

// TracesQuery selects traces.
type TracesQuery struct {
	Range
	Paging
	Filter string `query:"filter" maxLength:"1024" doc:"E.g. ip.src == 10.0.0.0/24 && udp.dstport == 4791"`
	Node   string `query:"node" maxLength:"256" doc:"A switch on the path"`
	Flow   string `query:"flow" maxLength:"128" doc:"Flow key"`
	End    string `query:"end" enum:"unknown,arrived,lost,looped,unsettled"`
	Fields string `query:"fields" maxLength:"1024" doc:"Filter fields whose values to return, separated by commas, e.g. ip.src,trace.last"`
}

// requireOf adds to a query what every match of a filter has, where the query has
// nothing. The store then skips all others: most traces are of packets that arrived,
// and of protocols. Addresses and ports are not among it: those of a packet in a tunnel
// are several, and a record has the flow of one.
func requireOf(c *record.Condition, f *topo.Fabric, q *record.Query) {
	if c == nil {
		return
	}
	if c.Op == "&&" {
		for _, part := range c.Of {
			requireOf(part, f, q)
		}
		return
	}
	text := ""
	if c.Op == "==" {
		text = c.Ranges[0].Lo.Text
	}
	switch is := c.Op == "has" || c.Op == "==" && c.Ranges[0].Lo.Int == 1; c.Field {
	case "trace.drop":
		if is {
			q.End = cmp.Or(q.End, "lost")
		}
	case "trace.loop":
		if is {
			q.End = cmp.Or(q.End, "looped")
		}
	case "trace.end":
		q.End = cmp.Or(q.End, text)
	case "trace.why":
		q.Why = cmp.Or(q.Why, text)
	case "hop.switch", "trace.first", "trace.last":
		if _, known := f.ByName(text); known { // a query by an unknown node is an error
			q.Node = cmp.Or(q.Node, text)
		}
	case "trace.latency":
		switch least := time.Duration(c.Ranges[0].Lo.Int); {
		case c.Op == ">" && least < math.MaxInt64:
			q.MinLatency = max(q.MinLatency, least+1)
		case c.Op == ">=" || c.Op == "==":
			q.MinLatency = max(q.MinLatency, least)
		}
	}
}

type traceInput struct {
	ID string `path:"id" pattern:"^[0-9]{1,20}$" doc:"64-bit number"`
}

func (s *Server) traceRoutes() {
	get(s, "/traces", "list-traces", "Traces", "List packet traces, newest first",
		coalesced(s, "list-traces", func(ctx context.Context, in *TracesQuery) (Page[TraceSummary], error) {
			var none Page[TraceSummary]
			q, err := s.query(in.Range, in.Paging)
			if err != nil {
				return none, err
			}
			f, err := parseFilter(s.currentFabric().traces, in.Filter)
			if err != nil {
				return none, err
			}
			if q.Flow, err = flowKey(in.Flow); err != nil {
				return none, err
			}
			q.Node, q.End = in.Node, in.End
			requireOf(f.Condition(), s.deps.Live.Fabric(), &q)
			var fields []string
			if in.Fields != "" {
				fields = strings.Split(in.Fields, ",")
			}
			columns, err := s.currentFabric().traces.Columns(fields...)
			if err != nil {
				return none, fmt.Errorf("%w: %w", err, ErrInvalid)
			}
			var view traceView
			return scanPage(ctx, s, s.deps.Records.Traces, q, func(r *record.Trace) (TraceSummary, bool) {
				if in.End != "" && in.End != r.End || !f.Match(view.withTrace(r)) {
					return TraceSummary{}, false
				}
				t := s.newTraceSummary(r)
				if len(fields) > 0 {
					t.Fields = columns.Row(&view)
				}
				return t, true
			})
		}))
	get(s, "/traces/{id}", "get-trace", "Traces", "One packet trace, hop by hop",
		func(ctx context.Context, in *traceInput) (Trace, error) {
			r, err := s.trace(ctx, in.ID)
			if err != nil {
				return Trace{}, err
			}
			return s.newTrace(r), nil
		})
	op := s.operation(http.MethodGet, "/traces/{id}.pcapng", "get-trace-pcapng", "Traces",
		"One packet trace as pcapng: one frame with a comment per hop")
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		pcapngType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	}}}
	registerRaw(s, op, func(ctx context.Context, in *traceInput) (rawReply, error) {
		r, err := s.trace(ctx, in.ID)
		if err != nil {
			return rawReply{}, err
		}
		data, err := encodePcapng(r)
		return rawReply{typ: pcapngType, name: "trace-" + in.ID + ".pcapng", data: data}, err
	})
}

const pcapngType = "application/x-pcapng"

func (s *Server) trace(ctx context.Context, id string) (*record.Trace, error) {
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return nil, fmt.Errorf("trace id %q, want a 64-bit number: %w", id, ErrInvalid)
	}
	return findOne(ctx, s.deps.Records.Traces, record.Query{Name: id}, "trace")
}
