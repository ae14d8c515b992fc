package scenario

import (
	"slices"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
)

// miscounting is a flowset that a fault has miscount: it sees a packet not at all, or twice.
type miscounting struct {
	inswitch.Program
	sw *sim.Switch
}

// Observe passes on what the faulty switch counts.
func (m miscounting) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	times := 1
	if ev.Stage == inswitch.Ingress {
		times = m.sw.FlowsetCounts()
	}
	for range times {
		m.Program.Observe(ev, act)
	}
}

// withMiscounts returns the programs of a switch with faults of their own.
func (x *session) withMiscounts(id model.NodeID, programs []inswitch.Program) []inswitch.Program {
	if !slices.ContainsFunc(x.s.Faults, func(f Fault) bool {
		m, ok := f.Fault.(sim.Miscount)
		return ok && m.Counter == sim.FlowsetPackets && m.Port.Node == id
	}) {
		return programs
	}
	programs = slices.Clone(programs)
	for i, p := range programs {
		if f, ok := p.(*flowset.Program); ok {
			programs[i] = miscounting{f, x.net.Switch(id)}
		}
	}
	return programs
}
