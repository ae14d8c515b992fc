package load

import (
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// knownGroups are the groups that the flows of a path use, by the path's number: they are not
// looked for again for each flow.
type knownGroups struct {
	list    []pathGroups
	edition *paths.PathEdition // of the numbers
}

// pathGroups are the groups that flows to dst use, under these routes.
type pathGroups struct {
	dst    model.Addr
	routes *topo.Routes // nil: none are known
	uses   [maxPathUses]pathUse
	length uint8
}

// pathUse is a port of a group.
type pathUse struct {
	group uint32
	port  uint16 // index among the group's ports
	hop   uint16
}

const maxPathUses = 8

// clear forgets the groups: their numbers are given anew.
func (k *knownGroups) clear() { k.list = k.list[:0] }

// of returns the groups that a flow uses; nil if its path has no number, or too many groups.
func (k *knownGroups) of(b *BalanceDetector, m *paths.Map, flow int) *pathGroups {
	n, ok := m.PathNumber(flow)
	if !ok {
		return nil
	}
	if e := m.PathEdition(); e != k.edition {
		k.clear()
		k.edition = e
	}
	for int(n) >= len(k.list) {
		k.list = append(k.list, pathGroups{})
	}
	p, dst, routes := &k.list[n], m.Key(flow).Dst, b.cache.Routes()
	if p.routes == routes && p.dst == dst {
		return p
	}
	*p = pathGroups{dst: dst}
	hops := m.Sightings(flow)
	for hop := range hops {
		s := &hops[hop]
		group, port, ok := b.groupOf(m.Key(flow), s.Switch, s.Out)
		if !ok || s.Out == 0 {
			continue
		}
		if int(p.length) == len(p.uses) {
			return nil
		}
		p.uses[p.length] = pathUse{group, uint16(port), uint16(hop)}
		p.length++
	}
	p.routes = routes
	return p
}
