package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// State is the fabric at one instant.
type State struct {
	Time  time.Time   `json:"time" doc:"By the fabric's clock"`
	Nodes []NodeState `json:"nodes"`
	Ports []PortState `json:"ports" doc:"By node, then port"`
	// Incidents is set in past states; clients have events of current ones.
	Incidents []Incident `json:"incidents,omitempty" doc:"Past states only: incidents of severity warning and above that were open, the most severe first"`
	// LabelCoverage is absent without labels, and in past states.
	LabelCoverage *float64 `json:"label_coverage,omitempty" doc:"Share of ports with traffic that labels reported, over the newest windows"`
	// Snapshot and Since are set by the API.
	Snapshot string `json:"snapshot,omitempty" doc:"Id of this snapshot, for since; absent in past states"`
	Since    string `json:"since,omitempty" doc:"Present if only nodes and ports are listed that have changed since this snapshot; the others have not reported since, and their age grows"`
}

// NodeState is the health of a node. NodeState and PortState are comparable, so
// that only changes are sent.
type NodeState struct {
	Name   string `json:"name"`
	Health string `json:"health" enum:"ok,degraded,failed,unknown"`
	Reason string `json:"reason,omitempty" doc:"Why the health is not ok"`
}

// PortState is the egress state of a port. AgeMs is its freshness.
type PortState struct {
	Node        string       `json:"node"`
	Port        model.PortID `json:"port"`
	LoadBps     int64        `json:"load_bps"`
	LoadShare   float64      `json:"load_share" doc:"Share of the link rate, 0 to 1"`
	QueueBytes  int64        `json:"queue_bytes"`
	LatencyNs   int64        `json:"latency_ns" doc:"Switch latency, by the switch's clock"`
	PausedShare float64      `json:"paused_share" doc:"Share of time paused by PFC, 0 to 1"`
	LostPackets uint64       `json:"lost_packets" doc:"Lost on the port's link in the last 100 ms of the fabric's time"`
	AgeMs       float64      `json:"age_ms" doc:"Age of the newest report; -1: never reported. A port that is not in a state event has not reported since the last event that contains it, and its age grows accordingly"`
}

// Clock relates the fabric's time to wall-clock time. All times of records and
// ranges are fabric time.
type Clock struct {
	Now        time.Time `json:"now" doc:"The fabric's time"`
	Wall       time.Time `json:"wall"`
	Mode       string    `json:"mode" enum:"serve,demo,replay"`
	Pace       float64   `json:"pace" doc:"Fabric seconds per wall-clock second, as measured; 1 is real time"`
	TargetPace float64   `json:"target_pace" doc:"Requested pace; 0 if the pace is fixed"`
}

// PaceRequest sets the pace of a simulated fabric.
type PaceRequest struct {
	Pace float64 `json:"pace" minimum:"0.000001" maximum:"1000" doc:"Fabric seconds per wall-clock second"`
}

type stateInput struct {
	Conditional
	At    time.Time `query:"at" doc:"RFC 3339: state at that time, from the store: the newest sample of each port, and node health from the incidents that were open; default: now"`
	Since string    `query:"since" maxLength:"64" doc:"A snapshot that the client has: only what has changed since is returned. Of an unknown snapshot, the whole state without since"`
	PodsQuery
}

func (s *Server) stateRoutes() {
	op := s.operation(http.MethodGet, "/state", "get-state", "Fabric",
		"State of every port and node, now or at a past time")
	op.Responses = taggedResponse[State](s)
	registerRaw(s, op, s.getState)
	get(s, "/clock", "get-clock", "Fabric", "The fabric's time and pace",
		func(context.Context, *struct{}) (Clock, error) { return s.deps.Live.Clock(), nil })
	type paceInput struct{ Body PaceRequest }
	put(s, "/clock", "set-pace", "Fabric", "Set the pace of a simulated fabric",
		func(ctx context.Context, in *paceInput) (Clock, error) {
			if s.deps.Lab == nil {
				return Clock{}, errNoLab
			}
			if err := s.deps.Lab.SetPace(ctx, in.Body.Pace); err != nil {
				return Clock{}, err
			}
			return s.deps.Live.Clock(), nil
		})
}

// getState answers with the whole state, the part of some pods, or what has changed.
func (s *Server) getState(ctx context.Context, in *stateInput) (rawReply, error) {
	pods, err := s.selectPods(in.Pods)
	if err != nil {
		return rawReply{}, err
	}
	if !in.At.IsZero() {
		if in.Since != "" {
			return rawReply{}, fmt.Errorf("since and at exclude each other: %w", ErrInvalid)
		}
		st, err := s.stateAt(ctx, in.At)
		if err == nil {
			pods.keepState(&st)
		}
		return jsonReply(&st), err
	}
	if in.Since == "" && pods == nil {
		st, id := s.snapshots.newest()
		r := rawReply{typ: "application/json", tag: snapshotTag(id)}
		if r.unchanged = in.unchanged(r.tag); !r.unchanged {
			r.encode = func(zip bool) []byte { return s.stateJSON.encode(st, id, zip) }
		}
		return r, nil
	}
	_, st := s.snapshots.changes(in.Since)
	r := rawReply{typ: "application/json", tag: snapshotTag(st.Snapshot)}
	if r.unchanged = in.unchanged(r.tag); !r.unchanged {
		pods.keepState(&st)
		r.data = encodeJSON(&st)
	}
	return r, nil
}
