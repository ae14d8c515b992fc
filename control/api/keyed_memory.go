package api

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// KeyedMemory is the part of a collector's memory that is read by key. Its methods
// read memory, never block, and are safe for concurrent use.
type KeyedMemory interface {
	// PortState returns the newest state that a switch wrote of a port. It is not found
	// if none arrived, or if other ports' states have overwritten it.
	PortState(p model.Port) (s keyed.PortState, found bool, err error)
	// HostCounts returns what a host sent and received of a priority. Each count is an
	// upper estimate of what switches reported.
	HostCounts(host model.NodeID, class model.Priority) (keyed.Counts, error)
	// CounterBound bounds the overestimate of a count.
	CounterBound() (CounterBound, error)
	// Postcards returns the paths of packets of a flow, newest first and complete ones
	// before others of the same time, and how many more are of several packets.
	Postcards(flow *model.FlowKey, now time.Time) (list []PostcardPath, mixed int, err error)
	// WallTime is the wall's time for a reading of a switch's clock.
	WallTime(t model.Time) time.Time
}

var errNoKeyedMemory = fmt.Errorf("this controller has no memory of keyed reports: %w", ErrUnsupported)

// PortsNow is the newest state of ports, read from the collector's memory.
type PortsNow struct {
	Time    time.Time `json:"time" doc:"The fabric's time"`
	Ports   []PortNow `json:"ports" doc:"By node, then port"`
	Missing []PortRef `json:"missing" doc:"Ports without a state: their switch wrote none, or other states overwrote it"`
}

// PortNow is the newest state that a switch wrote of a port.
type PortNow struct {
	PortRef
	Time          time.Time `json:"time" doc:"By the switch's clock"`
	AgeMs         float64   `json:"age_ms"`
	QueueBytes    int64     `json:"queue_bytes" doc:"In all queues of the port"`
	MaxQueueBytes int64     `json:"max_queue_bytes" doc:"In the fullest queue"`
	LoadBps       int64     `json:"load_bps" doc:"Since the state before"`
	LoadShare     float64   `json:"load_share" doc:"Share of the link rate, 0 to 1"`
	PausedShare   float64   `json:"paused_share" doc:"Share of time paused by PFC since the state before, 0 to 1"`
	PausedClasses []int     `json:"paused_classes" doc:"Priorities that are paused at this instant"`
	PausedNs      int64     `json:"paused_ns" doc:"Paused by PFC since the switch started"`
	SentBytes     uint64    `json:"sent_bytes" doc:"Since the switch started"`
	Discards      uint64    `json:"discards" doc:"Packets that found no buffer, since the switch started"`
}

type portsNowInput struct {
	Node string `query:"node" maxLength:"256" doc:"Only ports of this switch"`
}

type portNowInput struct {
	Node string `path:"node" maxLength:"256"`
	Port string `path:"port" maxLength:"256" doc:"Port number or interface name, e.g. 3 or Ethernet8"`
}

func (s *Server) keyedRoutes() {
	get(s, "/ports/now", "get-ports-now", "Ports", "Newest state of every switch port, from the collector's memory", s.portsNow)
	get(s, "/ports/now/{node}/{port}", "get-port-now", "Ports", "Newest state of one switch port, from the collector's memory",
		s.portNow)
	get(s, "/hosts/{host}/counters", "get-host-counters", "Hosts", "What a host sent and received by priority, from the collector's memory",
		s.hostCounters)
	get(s, "/flows/{key}/postcards", "get-flow-postcards", "Flows", "Path and latency of packets of a flow, from the collector's memory",
		s.flowPostcards)
}

func (s *Server) portsNow(_ context.Context, in *portsNowInput) (PortsNow, error) {
	out := PortsNow{Time: s.deps.Live.Clock().Now}
	if s.deps.Memory == nil {
		return out, errNoKeyedMemory
	}
	f := s.deps.Live.Fabric()
	list := f.Switches()
	if in.Node != "" {
		id, ok := f.ByName(in.Node)
		if !ok || !f.Node(id).Role.IsSwitch() {
			return out, fmt.Errorf("node %q is not a switch of the fabric: %w", in.Node, ErrNotFound)
		}
		list = []model.NodeID{id}
	}
	for _, id := range list {
		for i := range f.Node(id).Ports {
			p := model.Port{Node: id, Port: f.Node(id).Ports[i].ID}
			one, found, err := s.readPortNow(p, out.Time)
			switch {
			case err != nil:
				return out, err
			case found:
				out.Ports = append(out.Ports, one)
			default:
				out.Missing = append(out.Missing, newPortRef(f, p))
			}
		}
	}
	return out, nil
}

func (s *Server) portNow(_ context.Context, in *portNowInput) (PortNow, error) {
	if s.deps.Memory == nil {
		return PortNow{}, errNoKeyedMemory
	}
	f := s.deps.Live.Fabric()
	p, err := findPort(f, in.Node, in.Port)
	if err == nil && !f.Node(p.Node).Role.IsSwitch() {
		err = fmt.Errorf("node %q is not a switch", in.Node)
	}
	if err != nil {
		return PortNow{}, fmt.Errorf("%w: %w", err, ErrNotFound)
	}
	one, found, err := s.readPortNow(p, s.deps.Live.Clock().Now)
	if err == nil && !found {
		err = fmt.Errorf("state of %s: its switch wrote none, or other states overwrote it: %w", f.PortName(p), ErrNotFound)
	}
	return one, err
}

// readPortNow reads the state of a port.
func (s *Server) readPortNow(p model.Port, now time.Time) (one PortNow, found bool, err error) {
	st, found, err := s.deps.Memory.PortState(p)
	if err != nil || !found {
		return one, false, err
	}
	f := s.deps.Live.Fabric()
	at := s.deps.Memory.WallTime(st.Time)
	one = PortNow{
		PortRef: newPortRef(f, p), Time: at, AgeMs: float64(now.Sub(at)) / float64(time.Millisecond),
		QueueBytes: int64(st.Queue), MaxQueueBytes: int64(st.MaxQueue),
		LoadBps: int64(st.Load), LoadShare: float64(st.Load) / float64(f.Port(p).Rate),
		PausedShare: float64(st.PausedShare) / (1<<16 - 1), PausedNs: int64(st.PausedTime),
		SentBytes: st.Bytes, Discards: st.Discards, PausedClasses: []int{},
	}
	for class := range keyed.Classes {
		if st.PausedClass>>class&1 != 0 {
			one.PausedClasses = append(one.PausedClasses, class)
		}
	}
	return one, true, nil
}
