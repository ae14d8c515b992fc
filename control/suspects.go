package control

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
)

// suspects are the stops of paths that one slot suggests: its last packets may have been in
// flight, or in a queue, when it ended. They are logged when the next slot does not show
// these flows at the next switch.
type suspects struct {
	list []paths.Finding
	slot int64 // that suggests them
}

// maxSuspects bounds the stops of one slot that wait for the next. A fault that stops more
// paths than that is confirmed.
const maxSuspects = 1 << 10

// logOrSuspect logs a forwarding fault, or has it wait for the next slot.
func (c *Controller) logOrSuspect(f *paths.Finding, s *flowwatch.Slot, stalled bool) {
	if f.Confirmed || stalled || !f.HasNext || f.Kind != paths.BlackHole && f.Kind != paths.Silent {
		c.logPath(f, s.Length, stalled)
		return
	}
	if c.suspects.slot != s.Index {
		c.suspects = suspects{list: c.suspects.list[:0], slot: s.Index}
	}
	if len(c.suspects.list) < maxSuspects {
		kept := *f
		kept.Flows = slices.Clone(f.Flows)
		c.suspects.list = append(c.suspects.list, kept)
	}
}

// settleSuspects logs the stops that the slot before suggested and this one does not refute.
func (c *Controller) settleSuspects(s *flowwatch.Slot) {
	list := c.suspects.list
	c.suspects.list = nil
	if len(list) == 0 || s.Index != c.suspects.slot+1 {
		return
	}
	type stop struct {
		flow model.FlowKey
		next model.NodeID
	}
	arrived := map[stop]bool{}
	for i := range list {
		for _, k := range list[i].Flows {
			arrived[stop{k, list[i].Next.Node}] = false
		}
	}
	for f := range s.Flows() {
		for i := range f.Hops {
			if at := (stop{*f.Key, f.Hops[i].Switch}); f.Hops[i].Packets > 0 {
				if _, asked := arrived[at]; asked {
					arrived[at] = true
				}
			}
		}
	}
	for i := range list {
		f := &list[i]
		f.Flows = slices.DeleteFunc(f.Flows, func(k model.FlowKey) bool { return arrived[stop{k, f.Next.Node}] })
		if len(f.Flows) > 0 {
			c.logPath(f, s.Length, false)
		}
	}
}
