package audit

import (
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// pathSums adds up the flows of one path. What ports count is a sum over flows, so that flows of
// one path may be added to its ports as one.
type pathSums struct {
	hops   [maxPathHops]paths.Sighting
	key    model.FlowKey // of one of the flows
	length uint8         // 0: the path was not met yet
	apart  bool          // its flows are added one by one
}

const maxPathHops = 8

// addMap adds all flows of a map.
func (t *slotSums) addMap(m *paths.Map) {
	for i := range m.Flows() {
		hops := m.Sightings(i)
		n, ok := m.PathNumber(i)
		if !ok || !t.addToPath(n, m.Key(i), hops) {
			t.addFlow(m.Key(i), hops)
		}
	}
	for i := range t.paths {
		if p := &t.paths[i]; p.length > 0 && !p.apart {
			t.addFlow(&p.key, p.hops[:p.length])
		}
	}
	clear(t.paths)
	t.paths = t.paths[:0]
}

// addToPath adds a flow to the sums of its path. It reports false for a path whose flows are
// added one by one: a long one, or one that begins after a switch, which may have made the packets.
func (t *slotSums) addToPath(n uint32, key *model.FlowKey, hops []paths.Sighting) bool {
	for int(n) >= len(t.paths) {
		t.paths = append(t.paths, pathSums{})
	}
	p := &t.paths[n]
	if p.length == 0 {
		p.length = 1
		if p.apart = len(hops) > maxPathHops || t.ports.Peer(hops[0].Switch, hops[0].In).Kind == paths.SwitchPeer; !p.apart {
			p.key, p.length = *key, uint8(len(hops))
			copy(p.hops[:], hops)
			return true
		}
	}
	if p.apart {
		return false
	}
	for i := range hops {
		sum, s := &p.hops[i&(maxPathHops-1)], &hops[i]
		sum.Packets, sum.Bytes, sum.Exact = sum.Packets+s.Packets, sum.Bytes+s.Bytes, sum.Exact && s.Exact
	}
	return true
}
