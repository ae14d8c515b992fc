package api

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// HostCounters is what a host sent and received, read from the collector's memory.
type HostCounters struct {
	Time      time.Time    `json:"time" doc:"The fabric's time; counts may be as old as the period at which switches evict them"`
	Host      string       `json:"host"`
	Addresses []string     `json:"addresses"`
	Switches  []string     `json:"switches" doc:"That the host is attached to, and that count"`
	Total     HostCount    `json:"total" doc:"Sum of the classes below"`
	Classes   []ClassCount `json:"classes" doc:"Priorities with any count, ascending; or the one that was asked for"`
	Bound     CounterBound `json:"bound"`
}

// HostCount is what a host sent and received since the memory was made. Each number is
// an upper estimate of what was reported.
type HostCount struct {
	SentBytes       uint64 `json:"sent_bytes" doc:"From the Ethernet header to the payload, as the switch received them"`
	SentPackets     uint64 `json:"sent_packets"`
	ReceivedBytes   uint64 `json:"received_bytes" doc:"As the switch sent them"`
	ReceivedPackets uint64 `json:"received_packets"`
	ReceivedMarked  uint64 `json:"received_marked" doc:"Packets that arrived with ECN's mark of congestion"`
}

// ClassCount is a HostCount of one priority.
type ClassCount struct {
	Class int `json:"class" doc:"Priority, 0 to 7"`
	HostCount
}

// CounterBound bounds by how much a counter may be too high (count-min sketch). None is
// too low, unless reports were lost, which health counts.
type CounterBound struct {
	Excess  float64 `json:"excess" doc:"No counter of a class is too high by more than this,"`
	Failing float64 `json:"failing" doc:"except with this probability at most"`
	Shared  float64 `json:"shared" doc:"Probability at most that a counter is too high at all, if all hosts use all priorities"`
}

type hostCountersInput struct {
	Host  string `path:"host" maxLength:"256" doc:"Name or address"`
	Class int    `query:"class" minimum:"-1" maximum:"7" default:"-1" doc:"Only this priority; -1: all"`
}

func (s *Server) hostCounters(_ context.Context, in *hostCountersInput) (HostCounters, error) {
	out := HostCounters{Time: s.deps.Live.Clock().Now}
	if s.deps.Memory == nil {
		return out, errNoKeyedMemory
	}
	f := s.deps.Live.Fabric()
	id, ok := f.ByName(in.Host)
	if a, err := netip.ParseAddr(in.Host); err == nil && !ok {
		id, ok = f.ByAddr(model.AddrOf(a))
	}
	if !ok || f.Node(id).Role.IsSwitch() {
		return out, fmt.Errorf("%q is not a host of the fabric: %w", in.Host, ErrNotFound)
	}
	n := f.Node(id)
	out.Host = n.Name
	for _, a := range [...]model.Addr{n.IPv4, n.IPv6} {
		if a != (model.Addr{}) {
			out.Addresses = append(out.Addresses, a.String())
		}
	}
	for i := range n.Ports {
		if name := f.Node(n.Ports[i].Peer.Node).Name; !slices.Contains(out.Switches, name) {
			out.Switches = append(out.Switches, name)
		}
	}
	var total keyed.Counts
	for class := range keyed.Classes {
		if in.Class >= 0 && in.Class != class {
			continue
		}
		c, err := s.deps.Memory.HostCounts(id, model.Priority(class))
		if err != nil {
			return out, err
		}
		if c == (keyed.Counts{}) && in.Class != class {
			continue
		}
		out.Classes = append(out.Classes, ClassCount{class, newHostCount(&c)})
		total = total.Plus(c)
	}
	out.Total = newHostCount(&total)
	var err error
	out.Bound, err = s.deps.Memory.CounterBound()
	return out, err
}

func newHostCount(c *keyed.Counts) HostCount {
	return HostCount{
		SentBytes: c[keyed.SentBytes], SentPackets: c[keyed.SentPackets], ReceivedBytes: c[keyed.ReceivedBytes],
		ReceivedPackets: c[keyed.ReceivedPackets], ReceivedMarked: c[keyed.ReceivedMarked],
	}
}
