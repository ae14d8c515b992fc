package topo

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// maxRoutes bounds the table of switches × classes: 2^28 entries of 6 bytes
// are 1.5 GiB. A fat-tree of k=64 needs a tenth of it.
const maxRoutes = 1 << 28

// NewRoutes computes the routes of a fabric.
func NewRoutes(f *Fabric, cfg RouteConfig) (*Routes, error) {
	r := &Routes{
		f: f, cfg: cfg,
		seeds: make([]uint64, len(f.nodes)),
		row:   make([]int32, len(f.nodes)),
		slab:  make([]model.PortID, slabStart),
	}
	r.slab[delivered] = 1 // and the port after it is 0
	for i := range f.nodes {
		r.seeds[i] = nodeSeed(cfg.Seed, model.NodeID(i))
		r.row[i] = -1
	}
	for i, id := range f.switches {
		r.row[id] = int32(i)
	}
	if len(cfg.Down) > 0 {
		r.down = make([]bool, len(f.links))
	}
	for _, l := range cfg.Down {
		if l < 0 || l >= len(f.links) {
			return nil, fmt.Errorf("link %d is down, want a link from 0 to %d", l, len(f.links)-1)
		}
		r.down[l] = true
	}
	b := &routeBuilder{Routes: r, sets: make(map[string]uint32)}
	if err := b.checkMoved(); err != nil {
		return nil, err
	}
	if err := b.classify(); err != nil {
		return nil, err
	}
	b.computeTable()
	if err := b.compileOverrides(); err != nil {
		return nil, err
	}
	return r, nil
}

// nodeSeed derives a node's seed as splitmix64 does, so that nearby ids and
// seeds give unrelated values. Consecutive switches with the same hash would
// leave ports unused (hash polarization).
func nodeSeed(seed uint64, id model.NodeID) uint64 {
	return splitmix64Mix(seed + (uint64(id)+1)*0x9e3779b97f4a7c15)
}

// splitmix64Mix is splitmix64's last step: every bit of z affects every bit of
// the result.
func splitmix64Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// attachSwitch is a switch that a class attaches to: it owns the destination
// (hops 0) or a host on one of its ports does (hops 1).
type attachSwitch struct {
	row  uint32
	hops uint16
}

// routeBuilder holds what is only needed while routes are computed.
type routeBuilder struct {
	*Routes
	sets    map[string]uint32 // port set -> offset in slab
	sources [][]attachSwitch  // by class, ascending by row, smallest hops 0
	scratch []byte

	adj      []neighbour // of all switches, by row
	adjStart []uint32    // where each row's neighbours start; one more at the end
}

// neighbour is a switch at the other end of a switch's port.
type neighbour struct {
	row  uint32
	port model.PortID
}

// internPorts returns the offset of a port set in slab.
func (b *routeBuilder) internPorts(ports []model.PortID) uint32 {
	if len(ports) == 0 {
		return noRoute
	}
	key := b.scratch[:0]
	for _, p := range ports {
		key = binary.BigEndian.AppendUint16(key, uint16(p))
	}
	b.scratch = key
	if at, ok := b.sets[string(key)]; ok {
		return at
	}
	at := uint32(len(b.slab))
	b.slab = append(append(b.slab, model.PortID(len(ports))), ports...)
	b.sets[string(key)] = at
	return at
}

// classify gives every destination its class.
func (b *routeBuilder) classify() error {
	b.dests = make([]dest, len(b.f.nodes)+len(b.f.owned))
	byKey := make(map[string]uint32)
	var key []byte
	for i := range b.dests {
		src := b.sourcesOf(b.owners(i))
		// Only differences matter for the path: hosts on one switch and the
		// switch itself share a class.
		extra := uint16(0)
		if len(src) > 0 {
			extra = slices.MinFunc(src, func(x, y attachSwitch) int { return cmp.Compare(x.hops, y.hops) }).hops
		}
		key = key[:0]
		for j := range src {
			src[j].hops -= extra
			key = binary.BigEndian.AppendUint32(key, src[j].row)
			key = append(key, byte(src[j].hops))
		}
		class, known := byKey[string(key)]
		if !known {
			class = uint32(len(b.sources))
			byKey[string(key)] = class
			b.sources = append(b.sources, src)
			last := make([]model.NodeID, len(src))
			for j := range src {
				last[j] = b.f.switches[src[j].row]
			}
			b.lastHops = append(b.lastHops, last)
			if n := len(b.sources) * len(b.f.switches); n > maxRoutes {
				return fmt.Errorf("routes for %d or more switches and classes of destinations, want at most %d", n, maxRoutes)
			}
		}
		b.dests[i].class, b.dests[i].extra = class, extra
	}
	b.classes = len(b.sources)
	return nil
}

// owners returns the owners of destination i: a node, or an owned prefix.
func (b *routeBuilder) owners(i int) []model.NodeID {
	if i < len(b.f.nodes) {
		return b.f.self[i : i+1]
	}
	return b.f.owned[i-len(b.f.nodes)].owners
}

// sourcesOf lists the switches from which owners are reached directly.
func (b *routeBuilder) sourcesOf(owners []model.NodeID) (src []attachSwitch) {
	for _, o := range owners {
		if row := b.row[o]; row >= 0 {
			src = append(src, attachSwitch{uint32(row), 0})
			continue
		}
		for i := range b.f.nodes[o].Ports {
			p := &b.f.nodes[o].Ports[i]
			if row := b.row[p.Peer.Node]; row >= 0 && !b.isDown(p.Link) {
				src = append(src, attachSwitch{uint32(row), 1})
			}
		}
	}
	slices.SortFunc(src, func(x, y attachSwitch) int {
		return cmp.Or(cmp.Compare(x.row, y.row), cmp.Compare(x.hops, y.hops))
	})
	// Where a switch is both, keep the smaller distance.
	return slices.CompactFunc(src, func(x, y attachSwitch) bool { return x.row == y.row })
}

func (b *routeBuilder) isDown(link int) bool { return b.down != nil && b.down[link] }

// computeTable computes the table: for each class, distances from its switches outward,
// then each switch's ports that lead one step nearer.
func (b *routeBuilder) computeTable() {
	b.adjacency()
	rows := len(b.f.switches)
	b.table = make([]uint32, rows*b.classes)
	b.dist = make([]uint16, rows*b.classes)
	hops := make([]uint16, rows)
	before := make([]uint32, rows) // each switch's set for the previous class, often unchanged
	var queue []uint32
	var ports []model.PortID
	for class := range b.classes {
		queue = b.hopDistances(b.sources[class], hops, queue[:0])
		ports = b.fillClass(class, hops, before, ports)
	}
	b.recordLastHops()
}

// fillClass sets one class's column of the table from the distances to it.
func (b *routeBuilder) fillClass(class int, hops []uint16, before []uint32, ports []model.PortID) []model.PortID {
	for row := range hops {
		at := row*b.classes + class
		b.dist[at], b.table[at] = hops[row], noRoute
		if hops[row] == unreachable {
			continue
		}
		ports = b.appendNearerPorts(uint32(row), hops, ports[:0])
		if !slices.Equal(ports, b.ports(before[row])) {
			before[row] = b.internPorts(ports)
		}
		b.table[at] = before[row]
	}
	return ports
}

// adjacency lists, for each switch, its ports to other switches.
func (b *routeBuilder) adjacency() {
	b.adjStart = append(b.adjStart, 0)
	for _, id := range b.f.switches {
		for i := range b.f.nodes[id].Ports {
			p := &b.f.nodes[id].Ports[i]
			if row := b.row[p.Peer.Node]; row >= 0 && !b.isDown(p.Link) {
				b.adj = append(b.adj, neighbour{uint32(row), p.ID})
			}
		}
		b.adjStart = append(b.adjStart, uint32(len(b.adj)))
	}
}

// hopDistances sets hops to each switch's distance to a class, breadth first.
func (b *routeBuilder) hopDistances(src []attachSwitch, hops []uint16, queue []uint32) []uint32 {
	for i := range hops {
		hops[i] = unreachable
	}
	for _, s := range src {
		if s.hops == 0 {
			hops[s.row] = 0
			queue = append(queue, s.row)
		}
	}
	// Sources one hop out join as soon as the queue reaches that distance.
	waiting := len(queue) < len(src)
	for i := 0; i < len(queue); i++ {
		row := queue[i]
		for _, n := range b.adj[b.adjStart[row]:b.adjStart[row+1]] {
			if hops[n.row] == unreachable {
				hops[n.row] = hops[row] + 1
				queue = append(queue, n.row)
			}
		}
		if waiting && (i+1 == len(queue) || hops[queue[i+1]] > 0) {
			waiting = false
			for _, s := range src {
				if hops[s.row] == unreachable {
					hops[s.row] = s.hops
					queue = append(queue, s.row)
				}
			}
		}
	}
	return queue
}

// appendNearerPorts appends a switch's ports to switches one hop nearer.
func (b *routeBuilder) appendNearerPorts(row uint32, hops []uint16, ports []model.PortID) []model.PortID {
	for _, n := range b.adj[b.adjStart[row]:b.adjStart[row+1]] {
		if hops[n.row] != unreachable && hops[n.row]+1 == hops[row] {
			ports = append(ports, n.port)
		}
	}
	return ports
}

// recordLastHops records the ports by which each destination's last hops reach
// it and marks those switches in the table.
func (b *routeBuilder) recordLastHops() {
	transit := make(map[[2]uint32][]model.PortID) // (row, class): ports of a last hop to other switches
	for class, src := range b.sources {
		for _, s := range src {
			at := int(s.row)*b.classes + class
			// Where a switch and a host own the same prefix, a switch may reach
			// one over a neighbour and the other over its own port at equal cost.
			if set := b.table[at]; set != noRoute {
				transit[[2]uint32{s.row, uint32(class)}] = b.ports(set)
				b.transit = true
			}
			b.table[at] = atLastHop
		}
	}
	for i := range b.dests {
		d := &b.dests[i]
		d.local = uint32(len(b.local))
		owners := b.owners(i)
		for _, s := range b.sources[d.class] {
			set := uint32(delivered)
			if id := b.f.switches[s.row]; !slices.Contains(owners, id) {
				ports := slices.Concat(b.hostPorts(id, owners), transit[[2]uint32{s.row, d.class}])
				slices.Sort(ports)
				set = b.internPorts(ports)
			}
			b.local = append(b.local, localPorts{s.row, set})
		}
		d.n = uint32(len(b.local)) - d.local
	}
}

// hostPorts returns a switch's ports to any of the owners that are hosts.
func (b *routeBuilder) hostPorts(id model.NodeID, owners []model.NodeID) (ports []model.PortID) {
	for _, o := range owners {
		if b.row[o] >= 0 {
			continue
		}
		for i := range b.f.nodes[o].Ports {
			if p := &b.f.nodes[o].Ports[i]; p.Peer.Node == id && !b.isDown(p.Link) {
				ports = append(ports, p.Peer.Port)
			}
		}
	}
	return ports
}
