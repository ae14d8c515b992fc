package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Diagnosis is the summary of a verdict about a slow flow.
type Diagnosis struct {
	ID         string    `json:"id"`
	Time       time.Time `json:"time"`
	Anomaly    string    `json:"anomaly"`
	RootCause  string    `json:"root_cause"`
	Initial    *PortRef  `json:"initial_port,omitempty" doc:"Root port: the congested port, or the port that a host pauses"`
	Victim     FlowRef   `json:"victim"`
	Confidence float64   `json:"confidence" minimum:"0" maximum:"1"`
}

// DiagnosisDetail is a verdict with its evidence and provenance graph.
type DiagnosisDetail struct {
	Diagnosis
	DiagnosisBody
}

// DiagnosisBody is the Body of a record.Diagnosis.
type DiagnosisBody struct {
	CauseDetail   string        `json:"cause_detail" doc:"Refines the root cause: micro-burst, periodic, slow receiver, …"`
	Culprits      []Participant `json:"culprits" doc:"Largest contribution first"`
	Spreaders     []FlowRef     `json:"spreaders" doc:"Flows that spread PFC"`
	Victims       []FlowRef     `json:"victims"`
	PFCPath       []PortRef     `json:"pfc_path" doc:"PFC propagation path: each port is paused by the next"`
	DeadlockCycle []PortRef     `json:"deadlock_cycle" doc:"Ports of the deadlock cycle (cyclic buffer dependency): each waits for the next"`
	Persistent    bool          `json:"persistent" doc:"A second snapshot shows the same deadlock cycle without progress"`
	RoutingFault  *RoutingFault `json:"routing_fault,omitempty"`
	Evidence      []string      `json:"evidence" doc:"Supporting observations, and missing ones"`
	Remedy        string        `json:"remedy"`
	Account       *Account      `json:"account,omitempty" doc:"How long the late packet waited for which cause; absent if the host did not measure it"`
	Switches      int           `json:"switches_polled"`
	Telemetry     int64         `json:"telemetry_bytes"`
	PollingNs     int64         `json:"polling_ns" doc:"From the detection until the last switch took its snapshot"`
	CollectionNs  int64         `json:"collection_ns" doc:"From the last snapshot until the last report arrived"`
	AnalysisNs    int64         `json:"analysis_ns"`
	Graph         Graph         `json:"graph"`
}

// RoutingFault is a misconfigured route that closes a cyclic buffer dependency.
type RoutingFault struct {
	Node    string `json:"node"`
	Dst     string `json:"dst" doc:"Host whose packets are misrouted"`
	NextHop string `json:"next_hop"`
}

// Graph is the PFC provenance graph: which ports and flows wait for which. Edges
// refer to ports and flows by id.
type Graph struct {
	Ports []GraphPort `json:"ports"`
	Flows []GraphFlow `json:"flows"`
	Edges []GraphEdge `json:"edges"`
}

// GraphPort is one priority queue of one port.
type GraphPort struct {
	ID            string         `json:"id" doc:"node:port/priority, e.g. leaf0:3/3"`
	Node          string         `json:"node"`
	Port          model.PortID   `json:"port"`
	Priority      model.Priority `json:"priority"`
	Peer          string         `json:"peer"`
	ToHost        bool           `json:"to_host"`
	Packets       uint64         `json:"packets"`
	PausedPackets uint64         `json:"paused_packets"`
	DepthPackets  float64        `json:"depth_packets" doc:"Mean queue depth in packets at enqueue"`
	PauseFrames   uint64         `json:"pause_frames" doc:"Received"`
	Paused        bool           `json:"paused" doc:"Paused at the snapshot"`
	InPath        bool           `json:"in_path" doc:"On the PFC propagation path"`
	InCycle       bool           `json:"in_cycle" doc:"Part of the deadlock cycle"`
	Initial       bool           `json:"initial" doc:"The root port"`
	Level         int            `json:"level" doc:"Distance from the victim, which is the column in a drawing"`
}

// GraphFlow is a flow.
type GraphFlow struct {
	ID string `json:"id" doc:"The flow's key"`
	FlowRef
	Role  string `json:"role" enum:"victim,culprit,spreader,other"`
	Level int    `json:"level" doc:"Distance from the victim, which is the column in a drawing"`
}

// GraphEdge is a weighted wait-for edge.
type GraphEdge struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Kind   string  `json:"kind" enum:"port-port,flow-port,port-flow"`
	Weight float64 `json:"weight" doc:"Negative on a port-flow edge: the flow is a victim there"`
}

// DiagnosesQuery selects diagnoses.
type DiagnosesQuery struct {
	Range
	Paging
	Node string `query:"node" maxLength:"256"`
	Flow string `query:"flow" maxLength:"128" doc:"Flow key of the victim"`
}

type diagnosisInput struct {
	ID     string `path:"id" maxLength:"128"`
	Format string `query:"format" enum:"json,dot,svg" default:"json" doc:"dot and svg return only the provenance graph"`
}

func (s *Server) diagnosisRoutes() {
	get(s, "/diagnoses", "list-diagnoses", "Incidents", "List diagnoses, newest first",
		coalesced(s, "list-diagnoses", func(ctx context.Context, in *DiagnosesQuery) (Page[Diagnosis], error) {
			q, err := s.query(in.Range, in.Paging)
			if err != nil {
				return Page[Diagnosis]{}, err
			}
			q.Node = in.Node
			if q.Flow, err = flowKey(in.Flow); err != nil {
				return Page[Diagnosis]{}, err
			}
			return scanPage(ctx, s, s.deps.Records.Diagnoses, q, func(r *record.Diagnosis) (Diagnosis, bool) {
				return s.newDiagnosis(r), true
			})
		}))
	op := s.operation(http.MethodGet, "/diagnoses/{id}", "get-diagnosis", "Incidents",
		"One diagnosis with its provenance graph, or the graph as dot or SVG")
	op.Responses = jsonResponse[DiagnosisDetail](s)
	for _, typ := range []string{"text/vnd.graphviz", "image/svg+xml"} {
		op.Responses["200"].Content[typ] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	registerRaw(s, op, func(ctx context.Context, in *diagnosisInput) (rawReply, error) {
		d, err := s.diagnosis(ctx, in.ID)
		if err != nil {
			return rawReply{}, err
		}
		switch in.Format {
		case "dot":
			return rawReply{typ: "text/vnd.graphviz", data: []byte(d.Graph.drawing().Dot())}, nil
		case "svg":
			return rawReply{typ: "image/svg+xml", data: []byte(d.Graph.drawing().SVG())}, nil
		}
		return rawReply{typ: "application/json", data: encodeJSON(&d)}, nil
	})
}

func (s *Server) diagnosis(ctx context.Context, id string) (d DiagnosisDetail, err error) {
	r, err := findOne(ctx, s.deps.Records.Diagnoses, record.Query{Name: id}, "diagnosis")
	if err != nil {
		return d, err
	}
	d.Diagnosis = s.newDiagnosis(r)
	if err := json.Unmarshal(r.Body, &d.DiagnosisBody); len(r.Body) > 0 && err != nil {
		return d, fmt.Errorf("read body of diagnosis %s: %w", r.ID, err)
	}
	return d, nil
}

func (s *Server) newDiagnosis(r *record.Diagnosis) Diagnosis {
	d := Diagnosis{
		ID: r.ID, Time: r.Time, Anomaly: r.Anomaly, RootCause: r.RootCause,
		Victim: s.flowRef(r.Victim), Confidence: r.Confidence,
	}
	if r.Initial.Node != "" {
		d.Initial = &PortRef{Node: r.Initial.Node, Port: r.Initial.Port, Peer: r.Initial.Peer}
		if at, err := d.Initial.resolvePort(s.deps.Live.Fabric()); err == nil {
			d.Initial.Interface = s.deps.Live.Fabric().Port(at).Name
		}
	}
	return d
}
