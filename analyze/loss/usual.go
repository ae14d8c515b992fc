package loss

import "github.com/weft-telemetry/weft/analyze/paths"

// continueUsual adds a slot to a flowlet in the usual case: the flow takes the path that it
// took, from host to host, and no packet is missing anywhere on it. It reports false, and
// changes nothing, in any other case. It is addSlot and earlyLosses in two short passes: what they
// compute of such a flowlet is known, and there is no loss to report.
func (t *Tracker) continueUsual(fl *flowlet, m *paths.Map, flow int, path []paths.Sighting) bool {
	list := t.hopsOf(fl)
	if t.noUsual || len(path) == 0 || len(path) != len(list) || !fl.exact || fl.restarted || m.OnSeveralPaths(flow) {
		return false
	}
	before := uint64(0) // packets of the hop before
	for i := range list {
		h, s := &list[i], &path[i]
		packets := h.packets + s.Packets
		if h.sw != s.Switch || !s.Exact || s.Out != 0 && s.Out != h.out || h.deficit != 0 || packets < before {
			return false
		}
		// Each hop's packets come from the one before: then they are all that this one lacks.
		if i > 0 && (h.state&hasUp == 0 || int(h.upHop) != i-1) {
			return false
		}
		before = packets
	}
	if _, up := t.upstream(m, path, 0); up || list[0].state&hasUp != 0 {
		return false
	}
	last := &list[len(list)-1]
	// addSlot forgets that a hop was moved, but not of the last one.
	if last.state&moved != 0 || t.ports.Peer(last.sw, last.out).Kind != paths.HostPeer {
		return false
	}
	for i := range list {
		h := &list[i]
		h.last = path[i].Packets
		h.packets += h.last
		h.state = h.state&^(firstNow|provenLost|moved) | seenNow
	}
	return true
}
