package hpcc

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// flowWindows computes how many packets of a flow can be in flight.
type flowWindows struct {
	paths   *sim.PathTable
	payload int64
	on      bool
	global  int64 // bytes; 0: per pair
}

func (s *Setup) newWindows(c *Config) *flowWindows {
	w := &flowWindows{paths: sim.NewPathTable(s.Routes, c.Payload, true), payload: int64(c.Payload), on: c.Window}
	if c.Window && c.GlobalWindow {
		w.global, _ = w.paths.LargestWindow()
	}
	return w
}

// describe returns what bounds a flow.
func (w *flowWindows) describe() string {
	switch {
	case !w.on:
		return "bounded by their sizes, as HAS_WIN is 0"
	case w.global > 0:
		return fmt.Sprintf("with a window of %s each", model.FormatBytes(model.Bytes(w.global)))
	}
	return "with the windows of their pairs"
}

// packets returns the maximum of a flow's packets in flight: a sender stops at
// its window, and the packet that reaches it may exceed it.
func (w *flowWindows) packets(f *traffic.Flow) int64 {
	bytes := int64(f.Bytes)
	if w.on {
		window := w.global
		if window == 0 {
			if span, ok := w.paths.Between(f.Src, f.Dst); ok {
				window = span.Window()
			}
		}
		bytes = min(bytes, window+w.payload-1)
	}
	return (bytes + w.payload - 1) / w.payload
}

// key returns a flow's 5-tuple.
func (s *Setup) key(f *traffic.Flow) model.FlowKey {
	return model.FlowKey{
		Src: s.Fabric.Node(f.Src).IPv4, Dst: s.Fabric.Node(f.Dst).IPv4,
		SrcPort: f.SrcPort, DstPort: f.DstPort, Proto: model.UDP,
	}
}
