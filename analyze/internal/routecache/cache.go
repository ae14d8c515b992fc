// Package routecache answers questions about routes that are asked for every flow again,
// from a small table of the last answers. A fabric has few destinations and switches
// against its flows.
package routecache

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Sizes of the tables, in entries. One that is needed by two questions is asked for again
// each time, at the cost of asking the routes.
const (
	nextBits = 11
	destBits = 9
)

// Cache holds answers of one Routes at a time. The zero value is empty.
type Cache struct {
	routes *topo.Routes
	next   []nextHops
	dests  []destination
}

type nextHops struct {
	dst   model.Addr
	ports []model.PortID
	node  model.NodeID
	known bool
}

type destination struct {
	dst      model.Addr
	lastHops []model.NodeID
	known    bool
	mux      bool
}

// Use makes the cache answer for these routes.
func (c *Cache) Use(r *topo.Routes) {
	if c.routes == r {
		return
	}
	if c.next == nil {
		c.next, c.dests = make([]nextHops, 1<<nextBits), make([]destination, 1<<destBits)
	}
	clear(c.next)
	clear(c.dests)
	c.routes = r
}

// Routes returns the routes that the cache answers for.
func (c *Cache) Routes() *topo.Routes { return c.routes }

func spread(dst model.Addr, node model.NodeID, bits int) uint64 {
	return ((dst.Lo^uint64(node)<<33^dst.Hi)*0x9e3779b97f4a7c15 ^ dst.Hi) * 0xbf58476d1ce4e5b9 >> (64 - bits)
}

// NextHops is topo.Routes.NextHops.
func (c *Cache) NextHops(node model.NodeID, dst model.Addr) []model.PortID {
	e := &c.next[spread(dst, node, nextBits)]
	if !e.known || e.node != node || e.dst != dst {
		*e = nextHops{dst: dst, node: node, ports: c.routes.NextHops(node, dst), known: true}
	}
	return e.ports
}

// LastHops is topo.Routes.ExpectedLastHops.
func (c *Cache) LastHops(dst model.Addr) []model.NodeID { return c.dest(dst).lastHops }

// ToMux reports whether packets to a destination continue inside a tunnel, from a mux.
func (c *Cache) ToMux(dst model.Addr) bool { return c.dest(dst).mux }

func (c *Cache) dest(dst model.Addr) *destination {
	e := &c.dests[spread(dst, 0, destBits)]
	if !e.known || e.dst != dst {
		*e = destination{dst: dst, lastHops: c.routes.ExpectedLastHops(dst), known: true}
		f := c.routes.Fabric()
		for _, owner := range f.Owners(dst) {
			e.mux = e.mux || f.Node(owner).Role == topo.Mux
		}
	}
	return e
}
