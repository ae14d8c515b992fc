package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
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
	LostPackets uint64       `json:"lost_packets" doc:"On the link behind it, in the last 100 ms of the fabric's clock"`
	AgeMs       float64      `json:"age_ms" doc:"Since it was last heard of; -1 where it never was. A port that a state event does not have was not heard of since the last that has it, and is older by that"`
}

// stateCache is the newest snapshot as JSON: many clients ask for the same one, and
// that of a large fabric takes milliseconds to write.
type stateCache struct {
	mu    sync.Mutex
	state *State
	json  []byte
}

func (e *stateCache) encode(st *State) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != st {
		own := *st // lists are filled in a copy
		e.state, e.json = st, encodeJSON(&own)
	}
	return e.json
}

// Clock relates the fabric's time to the wall's. All times of records and
// ranges are the fabric's.
type Clock struct {
	Now  time.Time `json:"now" doc:"The fabric's time"`
	Wall time.Time `json:"wall"`
	Mode string    `json:"mode" enum:"serve,demo,replay"`
	Pace float64   `json:"pace" doc:"Fabric seconds in a wall second, as measured; 1 is real time"`
	// TargetPace is 0 where nobody can set it.
	TargetPace float64 `json:"wanted_pace" doc:"As set; 0 where it cannot be set"`
}

// PaceRequest asks for another pace.
type PaceRequest struct {
	Pace float64 `json:"pace" minimum:"0.000001" maximum:"1000" doc:"Fabric seconds in a wall second"`
}

type stateInput struct {
	At time.Time `query:"at" doc:"RFC 3339: the state at that time, from the store; health of nodes is not kept. Absent: now"`
}

// stateWindow is how far back a past state looks for a port's sample, and what
// it counts losses over: the second that the present's losses are of.
const stateWindow = time.Second

// stateAt puts a past state together: of each port the newest sample before.
func (s *Server) stateAt(ctx context.Context, at time.Time) (st State, err error) {
	q, err := s.query(Range{From: at.Add(-stateWindow), To: at}, Paging{})
	if err != nil {
		return st, err
	}
	f := s.deps.Live.Fabric()
	st.Time = at
	index := map[PortRef]int{}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		st.Nodes = append(st.Nodes, NodeState{Name: n.Name, Health: "unknown", Reason: "not kept"})
		for _, p := range n.Ports {
			index[PortRef{Node: n.Name, Port: p.ID}] = len(st.Ports)
			st.Ports = append(st.Ports, PortState{Node: n.Name, Port: p.ID, AgeMs: -1})
		}
	}
	left := len(st.Ports)
	if _, _, err = walkRecords(ctx, s, s.deps.Records.Ports, q, func(r *record.PortSample) bool {
		i, ok := index[PortRef{Node: r.Node, Port: r.Port}]
		if !ok || st.Ports[i].AgeMs >= 0 {
			return true
		}
		p := &st.Ports[i]
		p.LoadBps, p.QueueBytes, p.LatencyNs, p.PausedShare = int64(r.Load), int64(r.Queue), int64(r.Latency), r.Paused
		p.AgeMs = float64(at.Sub(r.Time)) / float64(time.Millisecond)
		id, _ := f.ByName(r.Node)
		p.LoadShare = float64(r.Load) / float64(f.Port(model.Port{Node: id, Port: r.Port}).Rate)
		left--
		return left > 0
	}); err != nil {
		return st, err
	}
	_, _, err = walkRecords(ctx, s, s.deps.Records.Losses, q, func(l *record.Loss) bool {
		if i, ok := index[PortRef{Node: l.From, Port: outPort(f, l.From, l.To)}]; ok {
			st.Ports[i].LostPackets += l.Packets
		}
		return true
	})
	return st, err
}

func (s *Server) stateRoutes() {
	op := s.operation(http.MethodGet, "/state", "get-state", "Fabric", "The fabric's state: every port and node, now or as it was")
	op.Responses = jsonResponse[State](s)
	registerRaw(s, op, func(ctx context.Context, in *stateInput) (rawReply, error) {
		if in.At.IsZero() {
			return rawReply{typ: "application/json", data: s.stateJSON.encode(s.deps.Live.State())}, nil
		}
		st, err := s.stateAt(ctx, in.At)
		return rawReply{typ: "application/json", data: encodeJSON(&st)}, err
	})
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
