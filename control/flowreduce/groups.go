package flowreduce

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// slotGroups adds up the reduced flows of one slot by host, job and path. A slot has few of
// them against its flows: names are made once for each, not for each flow.
type slotGroups struct {
	names *Names
	list  []group
	table []int32 // open addressing, by hash: index into list plus one; 0: free. At most half is used.
	nodes []model.NodeID
	jobs  map[string]int32 // index into list
	order []*group

	paths   []pathTotals // by number of the path, of the map that is added
	noPaths bool         // paths is not used; for tests
}

// group is the flows of a slot that one counter adds up.
type group struct {
	totals
	addr       model.Addr // of a host
	job        string
	path, hops uint32 // of a path: where its switches begin in slotGroups.nodes, and their number
	kind       groupKind
}

// groupKind is what the flows of a group have in common. A flow is added in this order.
type groupKind uint8

const (
	allFlows groupKind = iota
	fromHost
	toHost
	ofJob
	onPath
)

// groupSeed makes collisions unpredictable for those who choose addresses.
var groupSeed = rand.Uint64()

// begin begins a slot.
func (s *sums) begin(names *Names) {
	g := &s.groups
	g.names = names
	clear(g.list)
	clear(g.table)
	g.list, g.nodes = append(g.list[:0], group{totals: totals{place: ^uint32(0)}}), g.nodes[:0]
	if g.jobs == nil {
		g.jobs = map[string]int32{}
	}
	clear(g.jobs)
}

// add adds a flow of a map to the groups of its hosts, its job and its path. Those of paths and
// hosts have it after addPaths.
func (s *sums) add(m *paths.Map, flow int, t *paths.Totals) {
	g := &s.groups
	key, one := m.Key(flow), totals{t.Packets, t.Bytes, 1, m.Place(flow)}
	if name := g.names.Job(key); name != "" {
		g.job(name).add(&one)
	}
	if n, ok := m.PathNumber(flow); ok && !g.noPaths {
		for int(n) >= len(g.paths) {
			g.paths = append(g.paths, pathTotals{})
		}
		p := &g.paths[n]
		if p.flows == 0 {
			*p = pathTotals{totals: totals{place: ^uint32(0)}, src: key.Src, dst: key.Dst, flow: flow}
		}
		if p.src == key.Src && p.dst == key.Dst {
			p.add(&one)
			return
		}
	}
	g.add(key, m.Sightings(flow), &one)
}

// addPaths adds the flows of a map that were added up by path.
func (s *sums) addPaths(m *paths.Map) {
	g := &s.groups
	for i := range g.paths {
		if p := &g.paths[i]; p.flows > 0 {
			g.add(m.Key(p.flow), m.Sightings(p.flow), &p.totals)
		}
	}
	clear(g.paths)
	g.paths = g.paths[:0]
}

// pathTotals adds up flows of one path between two addresses.
type pathTotals struct {
	totals
	src, dst model.Addr
	flow     int // one of them
}

// totals are sums over flows.
type totals struct {
	packets, bytes uint64
	flows          uint32
	place          uint32 // of the first flow
}

func (o *totals) add(t *totals) {
	o.packets, o.bytes, o.flows = o.packets+t.packets, o.bytes+t.bytes, o.flows+t.flows
	o.place = min(o.place, t.place)
}

// add adds flows between two addresses on one path.
func (g *slotGroups) add(key *model.FlowKey, hops []paths.Sighting, t *totals) {
	if 2*(len(g.list)+3) > len(g.table) {
		g.grow()
	}
	g.list[0].add(t)
	g.host(fromHost, key.Src).add(t)
	g.host(toHost, key.Dst).add(t)
	g.path(hops).add(t)
}

// insert adds a group to the list, and to the table at a place that is free.
func (g *slotGroups) insert(at uint64, o group) *group {
	o.place = ^uint32(0)
	g.list = append(g.list, o)
	g.table[at] = int32(len(g.list))
	return &g.list[len(g.list)-1]
}

func (g *slotGroups) host(kind groupKind, a model.Addr) *group {
	mask := uint64(len(g.table) - 1)
	for at := hostHash(kind, a) & mask; ; at = (at + 1) & mask {
		i := g.table[at]
		if i == 0 {
			return g.insert(at, group{kind: kind, addr: a})
		}
		if o := &g.list[i-1]; o.addr == a && o.kind == kind {
			return o
		}
	}
}

func (g *slotGroups) path(hops []paths.Sighting) *group {
	mask := uint64(len(g.table) - 1)
	hash := pathHash(len(hops), func(i int) model.NodeID { return hops[i].Switch })
	for at := hash & mask; ; at = (at + 1) & mask {
		i := g.table[at]
		if i == 0 {
			first := len(g.nodes)
			for k := range hops {
				g.nodes = append(g.nodes, hops[k].Switch)
			}
			return g.insert(at, group{kind: onPath, path: uint32(first), hops: uint32(len(hops))})
		}
		if o := &g.list[i-1]; o.kind == onPath && g.isPath(o, hops) {
			return o
		}
	}
}

func (g *slotGroups) switches(o *group) []model.NodeID { return g.nodes[o.path : o.path+o.hops] }

func (g *slotGroups) isPath(o *group, hops []paths.Sighting) bool {
	if int(o.hops) != len(hops) {
		return false
	}
	for i, sw := range g.switches(o) {
		if hops[i].Switch != sw {
			return false
		}
	}
	return true
}

// job returns the group of a job. Jobs are few, and not in the table.
func (g *slotGroups) job(name string) *group {
	i, known := g.jobs[name]
	if !known {
		i = int32(len(g.list))
		g.list = append(g.list, group{kind: ofJob, job: name, totals: totals{place: ^uint32(0)}})
		g.jobs[name] = i
	}
	return &g.list[i]
}

// grow makes the table larger.
func (g *slotGroups) grow() {
	g.table = make([]int32, max(4*len(g.table), 64))
	mask := uint64(len(g.table) - 1)
	for i := range g.list {
		o := &g.list[i]
		var hash uint64
		switch o.kind {
		case fromHost, toHost:
			hash = hostHash(o.kind, o.addr)
		case onPath:
			nodes := g.switches(o)
			hash = pathHash(len(nodes), func(i int) model.NodeID { return nodes[i] })
		default:
			continue
		}
		at := hash & mask
		for g.table[at] != 0 {
			at = (at + 1) & mask
		}
		g.table[at] = int32(i + 1)
	}
}

func hostHash(kind groupKind, a model.Addr) uint64 {
	return mix(mix(groupSeed^uint64(kind), a.Hi)^a.Lo, groupSeed)
}

func pathHash(n int, node func(int) model.NodeID) uint64 {
	h := groupSeed
	for i := range n {
		h = mix(h^uint64(node(i)), groupSeed)
	}
	return h
}

// mix multiplies to 128 bits and folds the halves.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b|1)
	return hi ^ lo
}

// inOrder returns the groups of the slot, those of earlier flows first.
func (g *slotGroups) inOrder() []*group {
	clear(g.order)
	g.order = g.order[:0]
	for i := range g.list {
		if g.list[i].flows > 0 {
			g.order = append(g.order, &g.list[i])
		}
	}
	slices.SortFunc(g.order, func(a, b *group) int { return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.kind, b.kind)) })
	return g.order
}

// appendName appends the name of a group's counter.
func (g *slotGroups) appendName(b []byte, o *group) []byte {
	switch o.kind {
	case allFlows:
		return append(b, All...)
	case fromHost:
		return append(append(b, From...), g.hostName(o.addr)...)
	case toHost:
		return append(append(b, To...), g.hostName(o.addr)...)
	case ofJob:
		return append(append(b, OfJob...), o.job...)
	}
	b = append(b, OnPath...)
	for i, sw := range g.switches(o) {
		if i > 0 {
			b = append(b, " > "...)
		}
		b = append(b, g.names.Switch(sw)...)
	}
	return b
}

// hostName is the name of a host; those outside the fabric have one together.
func (g *slotGroups) hostName(a model.Addr) string {
	if name := g.names.Host(a); name != "" {
		return name
	}
	return "outside"
}
