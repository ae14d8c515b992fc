package api

import (
	"context"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// State is the fabric at one instant.
type State struct {
	Time  time.Time   `json:"time" doc:"By the fabric's clock"`
	Nodes []NodeState `json:"nodes"`
	Ports []PortState `json:"ports" doc:"By node, then port"`
}

// NodeState is how a node is. Both it and PortState are comparable: what has
// not changed is not sent again.
type NodeState struct {
	Name   string `json:"name"`
	Health string `json:"health" enum:"ok,degraded,failed,unknown"`
	Reason string `json:"reason,omitempty" doc:"Why it is not ok"`
}

// PortState is what a port does to the packets it sends. AgeMs tells whether to
// believe it.
type PortState struct {
	Node        string       `json:"node"`
	Port        model.PortID `json:"port"`
	LoadBps     int64        `json:"load_bps"`
	LoadShare   float64      `json:"load_share" doc:"Of the link's rate, 0 to 1"`
	QueueBytes  int64        `json:"queue_bytes"`
	LatencyNs   int64        `json:"latency_ns" doc:"Through the switch, by its own clock"`
	PausedShare float64      `json:"paused_share" doc:"Share of the time that PFC kept it from sending, 0 to 1"`
	LostPackets uint64       `json:"lost_packets" doc:"On the link behind it, in the last second of the fabric's clock"`
	AgeMs       float64      `json:"age_ms" doc:"Since it was last heard of; -1 where it never was"`
}

// Clock relates the fabric's time to the wall's. All times of records and
// ranges are the fabric's.
type Clock struct {
	Now  time.Time `json:"now" doc:"The fabric's time"`
	Wall time.Time `json:"wall"`
	Mode string    `json:"mode" enum:"serve,demo,replay"`
	Pace float64   `json:"pace" doc:"Fabric seconds in a wall second, as measured; 1 is real time"`
	// WantedPace is 0 where nobody can set it.
	WantedPace float64 `json:"wanted_pace" doc:"As set; 0 where it cannot be set"`
}

// PaceRequest asks for another pace.
type PaceRequest struct {
	Pace float64 `json:"pace" minimum:"0.000001" maximum:"1000" doc:"Fabric seconds in a wall second"`
}

func (s *Server) stateRoutes() {
	get(s, "/state", "get-state", "Fabric", "The fabric's present state: every port and node",
		func(context.Context, *struct{}) (State, error) { return *s.deps.Live.State(), nil })
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
