package audit

import (
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// pathSums adds up the flows of each path in a slot. What ports count is a sum over flows, so that
// flows of one path may be added to its ports as one.
type pathSums struct {
	list    []pathSum
	index   map[pathKey]uint32
	numbers map[*paths.PathEdition]*pathNumbers
}

// pathNumbers are paths by their number in the maps of an edition.
type pathNumbers struct {
	index []uint32 // in pathSums.list, plus one
	used  bool     // since the last reset
}

// pathSum is the flows of one path in a slot, as one.
type pathSum struct {
	hops   [maxPathHops]paths.Sighting
	key    model.FlowKey // of one of the flows
	flows  uint32
	length uint8
	apart  bool // its flows are added one by one
}

// pathKey is what flows of one path have in common.
type pathKey struct {
	hops   [maxPathHops]pathHop
	length int
}

type pathHop struct {
	sw      model.NodeID
	in, out model.PortID
}

const (
	maxPathHops = 8
	// maxPaths bounds the paths that are known. When there are more, all are forgotten.
	maxPaths = 1 << 14
)

// reset begins a slot. Editions that no map of the last one had do not come back.
func (s *pathSums) reset() {
	if s.index == nil || len(s.list) > maxPaths {
		s.index, s.numbers, s.list = map[pathKey]uint32{}, map[*paths.PathEdition]*pathNumbers{}, s.list[:0]
	}
	for edition, n := range s.numbers {
		if !n.used {
			delete(s.numbers, edition)
		}
		n.used = false
	}
}

// addMap adds all flows of a map. Some of them are added by endMaps.
func (t *slotSums) addMap(m *paths.Map) {
	numbers := t.paths.numbers[m.PathEdition()]
	if numbers == nil {
		numbers = &pathNumbers{}
		t.paths.numbers[m.PathEdition()] = numbers
	}
	numbers.used = true
	for i := range m.Flows() {
		hops := m.Sightings(i)
		n, ok := m.PathNumber(i)
		if !ok || len(hops) > maxPathHops {
			t.addFlow(m.Key(i), hops)
			continue
		}
		for int(n) >= len(numbers.index) {
			numbers.index = append(numbers.index, 0)
		}
		if numbers.index[n] == 0 {
			numbers.index[n] = t.pathOf(hops) + 1
		}
		if p := &t.paths.list[numbers.index[n]-1]; p.apart {
			t.addFlow(m.Key(i), hops)
		} else {
			p.add(m.Key(i), hops)
		}
	}
}

// endMaps adds what addMap added up by path.
func (t *slotSums) endMaps() {
	for i := range t.paths.list {
		if p := &t.paths.list[i]; p.flows > 0 {
			t.addFlow(&p.key, p.hops[:p.length])
			p.flows = 0
		}
	}
}

// pathOf returns the index of a path. Flows of one that begins after a switch, which may have made
// the packets, are added one by one.
func (t *slotSums) pathOf(hops []paths.Sighting) uint32 {
	k := pathKey{length: len(hops)}
	for i := range hops {
		k.hops[i] = pathHop{hops[i].Switch, hops[i].In, hops[i].Out}
	}
	s := &t.paths
	n, known := s.index[k]
	if !known {
		n = uint32(len(s.list))
		s.index[k] = n
		s.list = append(s.list, pathSum{length: uint8(len(hops)), apart: t.ports.Peer(hops[0].Switch, hops[0].In).Kind == paths.SwitchPeer})
	}
	return n
}

// add adds a flow.
func (p *pathSum) add(key *model.FlowKey, hops []paths.Sighting) {
	if p.flows++; p.flows == 1 {
		p.key = *key
		copy(p.hops[:], hops)
		return
	}
	for i := range hops {
		sum, s := &p.hops[i&(maxPathHops-1)], &hops[i]
		sum.Packets, sum.Bytes, sum.Exact = sum.Packets+s.Packets, sum.Bytes+s.Bytes, sum.Exact && s.Exact
	}
}
