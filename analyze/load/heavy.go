package load

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// heaviestFlows returns the largest flows of the busiest port, until the rest is
// no more than the mean.
func (g *portGroup) heaviestFlows(parts []*BalanceDetector, im *Imbalance) (keys []model.FlowKey) {
	busiest := im.busiest()
	var list []Size
	for _, b := range parts {
		for group := range b.groups {
			if own := &b.groups[group]; own.sw == g.sw && slices.Equal(own.ports, g.ports) {
				list = b.flowsOf(list, uint32(group), busiest.Port)
			}
		}
	}
	return heaviest(list, im)
}

// heaviest returns the largest of the flows of the busiest port, until the rest is no more
// than the mean.
func heaviest(list []Size, im *Imbalance) (keys []model.FlowKey) {
	rest, mean := float64(im.busiest().Packets), im.mean()
	for _, f := range Largest(list, len(list)) {
		if rest <= mean {
			break
		}
		keys = append(keys, f.Flow)
		rest -= float64(f.Packets)
	}
	return keys
}

// flowsOf appends the flows of one port of a group.
func (b *BalanceDetector) flowsOf(list []Size, group uint32, port model.PortID) []Size {
	index := uint16(slices.Index(b.groups[group].ports, port))
	for n := range uint32(len(b.heads)) {
		if u := b.find(n, group); u != nil && u.port == index {
			list = append(list, Size{Flow: *b.flows.Key(n), Packets: u.packets})
		}
	}
	return list
}
