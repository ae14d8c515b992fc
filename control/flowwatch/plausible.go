package flowwatch

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// accept refuses flowsets of switches and ports that the fabric does not have, and
// such with totals that the switch cannot have counted.
func (w *Decoder) accept(h *flowset.Header) error {
	if !w.fabric.HasNode(h.Switch) || !w.fabric.Node(h.Switch).Role.IsSwitch() ||
		h.Scope != 0 && w.fabric.Node(h.Switch).Port(h.Scope) == nil {
		return flows.ErrUnknown
	}
	if most := &w.most[h.Switch]; h.Counts.Packets > most.Packets || h.Counts.Bytes > most.Bytes {
		return flows.ErrImplausible
	}
	return nil
}

// slotCapacities returns, by node, more than what its ports can carry in one slot.
// Counts below it cannot overflow when those of many slots are added up.
func slotCapacities(f *topo.Fabric, slot time.Duration) []flowset.Counts {
	list := make([]flowset.Counts, len(f.Nodes()))
	for i := range f.Nodes() {
		rate := 0.0
		for _, p := range f.Nodes()[i].Ports {
			rate += float64(p.Rate)
		}
		// Twice the rate, and what buffers may release at once. No packet is
		// shorter than 32 bytes.
		n := min(2*rate/8*slot.Seconds()+64e6, 1<<52)
		list[i] = flowset.Counts{Bytes: uint64(n), Packets: uint64(n / 32)}
	}
	return list
}

// knownPort returns a port of a switch with some ports, 0 if it does not have it.
func knownPort(port, ports model.PortID) model.PortID {
	if port > ports {
		return 0
	}
	return port
}
