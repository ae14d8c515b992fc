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

// Diagnosis is a verdict about a slow flow, in short.
type Diagnosis struct {
	ID         string    `json:"id"`
	Time       time.Time `json:"time"`
	Anomaly    string    `json:"anomaly"`
	RootCause  string    `json:"root_cause"`
	Initial    *PortRef  `json:"initial_port,omitempty" doc:"Where the waiting ends: the overfull port, or the one that a host pauses"`
	Victim     FlowRef   `json:"victim"`
	Confidence float64   `json:"confidence" minimum:"0" maximum:"1"`
}

// DiagnosisDetail is a verdict with all that it rests on.
type DiagnosisDetail struct {
	Diagnosis
	DiagnosisBody
}

// DiagnosisBody is the Body of a record.Diagnosis.
type DiagnosisBody struct {
	CauseDetail  string        `json:"cause_detail" doc:"How the cause came about: micro-burst, periodic, slow receiver, …"`
	Culprits     []Participant       `json:"culprits" doc:"Heaviest first"`
	Spreaders    []FlowRef     `json:"spreaders" doc:"Flows that carried the pauses on"`
	Victims      []FlowRef     `json:"victims"`
	PFCPath      []PortRef     `json:"pfc_path" doc:"How pauses spread: each port waited for the next"`
	DeadlockCycle         []PortRef     `json:"loop" doc:"Ports that wait for each other in a circle"`
	Persistent     bool          `json:"standing" doc:"A second look found the loop unmoved"`
	RoutingFault *RoutingFault `json:"routing_fault,omitempty"`
	Evidence     []string      `json:"evidence" doc:"What it rests on, and what is missing"`
	Remedy       string        `json:"remedy"`
	Switches     int           `json:"switches_polled"`
	Telemetry    int64         `json:"telemetry_bytes"`
	PollingNs    int64         `json:"polling_ns" doc:"Until the last switch froze its state"`
	CollectionNs int64         `json:"collection_ns" doc:"From then until the last report had arrived"`
	AnalysisNs   int64         `json:"analysis_ns"`
	Graph        Graph         `json:"graph"`
}

// RoutingFault is an entry of a switch that is not as intended and closes a
// circle of waiting.
type RoutingFault struct {
	Node    string `json:"node"`
	Dst     string `json:"dst" doc:"Host whose packets go the wrong way"`
	NextHop string `json:"next_hop"`
}

// Graph says who waited for whom. Edges name nodes and flows by their ids.
type Graph struct {
	Ports []GraphPort `json:"ports"`
	Flows []GraphFlow `json:"flows"`
	Edges []GraphEdge `json:"edges"`
}

// GraphPort is one class of one port.
type GraphPort struct {
	ID            string         `json:"id" doc:"As in leaf0:3/3: node, port, priority"`
	Node          string         `json:"node"`
	Port          model.PortID   `json:"port"`
	Priority      model.Priority `json:"priority"`
	Peer          string         `json:"peer"`
	ToHost        bool           `json:"to_host"`
	Packets       uint64         `json:"packets"`
	PausedPackets uint64         `json:"paused_packets"`
	DepthPackets  float64        `json:"depth_packets" doc:"Packets before each, in the mean"`
	PauseFrames   uint64         `json:"pause_frames" doc:"Received"`
	Paused        bool           `json:"paused" doc:"At the snapshot"`
	InPath        bool           `json:"in_path" doc:"On the way that pauses spread"`
	InCycle        bool           `json:"in_loop"`
	Initial       bool           `json:"initial"`
	Level         int            `json:"level" doc:"Steps from the victim: the column in a drawing"`
}

// GraphFlow is a flow.
type GraphFlow struct {
	ID string `json:"id" doc:"The flow's key"`
	FlowRef
	Role  string `json:"role" enum:"victim,culprit,spreader,other"`
	Level int    `json:"level" doc:"Steps from the victim: the column in a drawing"`
}

// GraphEdge is a weighted wait-for relation.
type GraphEdge struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Kind   string  `json:"kind" enum:"port-port,flow-port,port-flow"`
	Weight float64 `json:"weight" doc:"Below zero on a port-flow edge: the flow is a victim there"`
}

// DiagnosesQuery asks for diagnoses.
type DiagnosesQuery struct {
	Range
	Paging
	Node string `query:"node" maxLength:"256"`
	Flow string `query:"flow" maxLength:"128" doc:"Key of the victim"`
}

type diagnosisInput struct {
	ID     string `path:"id" maxLength:"128"`
	Format string `query:"format" enum:"json,dot,svg" default:"json" doc:"dot and svg give the graph alone"`
}

func (s *Server) diagnosisRoutes() {
	get(s, "/diagnoses", "list-diagnoses", "Incidents", "Diagnoses, newest first",
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
	op := s.operation(http.MethodGet, "/diagnoses/{id}", "get-diagnosis", "Incidents", "One diagnosis with its graph, or the graph as a drawing")
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
	}
	return d
}
