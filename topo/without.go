package topo

import (
	"maps"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// Without returns the routes when links are down as well as those that are down
// already: what routing computes after a failure. Static routes stay. The result
// equals that of NewRoutes and costs far less where a failure changes few
// distances, as most do in a fabric with many paths.
func (r *Routes) Without(links ...int) (*Routes, error) {
	next, _, err := r.without(links)
	return next, err
}

// changedRoutes are the classes of destinations that a failure changes by more
// than taking some of several equal paths away.
type changedRoutes struct {
	all     bool // classes have other numbers: compare nothing
	classes map[uint32]bool
}

func (r *Routes) without(links []int) (*Routes, changedRoutes, error) {
	cfg := r.cfg
	cfg.Down = slices.Concat(r.cfg.Down, links)
	if r.transit || slices.ContainsFunc(links, r.attachesHost) {
		next, err := NewRoutes(r.f, cfg)
		return next, changedRoutes{all: true}, err
	}
	next := *r
	next.cfg = cfg
	next.down = make([]bool, len(r.f.links))
	copy(next.down, r.down)
	for _, l := range links {
		next.down[l] = true
	}
	next.table, next.dist, next.slab = slices.Clone(r.table), slices.Clone(r.dist), slices.Clip(r.slab)
	b := &routeBuilder{Routes: &next, sets: make(map[string]uint32)}
	b.adjacency()
	changed := changedRoutes{classes: b.takeAway(r, links)}
	hops, before := make([]uint16, len(r.f.switches)), make([]uint32, len(r.f.switches))
	var queue []uint32
	var ports []model.PortID
	for _, class := range slices.Sorted(maps.Keys(changed.classes)) {
		sources := b.sourcesOf(r.lastHops[class])
		queue = b.hopDistances(sources, hops, queue[:0])
		ports = b.fillClass(int(class), hops, before, ports)
		for _, s := range sources {
			next.table[int(s.row)*next.classes+int(class)] = atLastHop
		}
	}
	return &next, changed, nil
}

// attachesHost reports whether a link is not one of the fabric's, or has a host
// at one end: then classes of destinations change, too.
func (r *Routes) attachesHost(link int) bool {
	if link < 0 || link >= len(r.f.links) {
		return true
	}
	l := &r.f.links[link]
	return r.row[l.A.Node] < 0 || r.row[l.B.Node] < 0
}

// takeAway removes links from the table, where switches have other ports of
// equal cost, and returns the classes for which one has none left: distances
// change there.
func (b *routeBuilder) takeAway(r *Routes, links []int) map[uint32]bool {
	changed := make(map[uint32]bool)
	var left []model.PortID
	for _, link := range links {
		for _, end := range []model.Port{r.f.links[link].A, r.f.links[link].B} {
			row := int(r.row[end.Node])
			for class := range r.classes {
				at := row*r.classes + class
				set := b.table[at]
				if set == noRoute || set == atLastHop || changed[uint32(class)] {
					continue
				}
				if left = left[:0]; !slices.Contains(b.ports(set), end.Port) {
					continue
				}
				for _, p := range b.ports(set) {
					if p != end.Port {
						left = append(left, p)
					}
				}
				if len(left) == 0 {
					changed[uint32(class)] = true
					continue
				}
				b.table[at] = b.internPorts(left)
			}
		}
	}
	return changed
}
