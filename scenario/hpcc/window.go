package hpcc

import (
	"fmt"
	"math"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// windows knows how much of a flow can be on its way.
type windows struct {
	s       *Setup
	payload int64
	on      bool
	global  int64 // bytes; 0: each pair has its own
}

func (s *Setup) newWindows(c *Config) *windows {
	w := &windows{s: s, payload: int64(c.Payload), on: c.Window}
	if c.Window && c.GlobalWindow {
		w.global = w.largest()
	}
	return w
}

// describe says what bounds a flow.
func (w *windows) describe() string {
	switch {
	case !w.on:
		return "bounded by their sizes, as HAS_WIN is 0"
	case w.global > 0:
		return fmt.Sprintf("with a window of %s each", about(model.Bytes(w.global)))
	}
	return "with the windows of their pairs"
}

// packets is the most of a flow's packets that can be on their way: a sender
// stops at its window, and the packet that reaches it may go beyond.
func (w *windows) packets(f *traffic.Flow) int64 {
	bytes := int64(f.Bytes)
	if w.on {
		window := w.global
		if window == 0 {
			window = w.of(f)
		}
		bytes = min(bytes, window+w.payload-1)
	}
	return (bytes + w.payload - 1) / w.payload
}

// of is the bandwidth-delay product of a flow's path: the lowest rate times
// both ways of propagation and one of sending a payload.
func (w *windows) of(f *traffic.Flow) int64 {
	hops, err := w.s.Routes.Path(w.s.key(f), f.Src)
	if err != nil {
		return 0
	}
	rtt, least := 0.0, model.Rate(math.MaxInt64)
	for _, h := range hops {
		if h.Out == 0 {
			continue
		}
		p := w.s.Fabric.Node(h.Node).Port(h.Out)
		rtt += 2*p.Delay.Seconds() + float64(w.payload*8)/float64(p.Rate)
		least = min(least, p.Rate)
	}
	return int64(rtt * float64(least) / 8)
}

// largest is the largest window of any pair of hosts. Hosts with like links to
// the same switch need only one look.
func (w *windows) largest() (most int64) {
	type place struct {
		to   model.NodeID
		link topo.LinkSpec
	}
	seen := make(map[place]int)
	var some []model.NodeID // two of each place: a pair may share it
	for _, h := range w.s.Fabric.Hosts() {
		for _, p := range w.s.Fabric.Node(h).Ports {
			at := place{p.Peer.Node, p.LinkSpec}
			if seen[at] < 2 {
				some = append(some, h)
			}
			seen[at]++
		}
	}
	for _, a := range some {
		for _, b := range some {
			if a != b {
				most = max(most, w.of(&traffic.Flow{Src: a, Dst: b}))
			}
		}
	}
	return most
}

// key is a flow's 5-tuple.
func (s *Setup) key(f *traffic.Flow) model.FlowKey {
	return model.FlowKey{
		Src: s.Fabric.Node(f.Src).IPv4, Dst: s.Fabric.Node(f.Dst).IPv4,
		SrcPort: f.SrcPort, DstPort: f.DstPort, Proto: model.UDP,
	}
}
