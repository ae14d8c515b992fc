package topo

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// traffic is packets that all switches route the same: those to one class of
// destinations, or to one destination that a static route changes.
type traffic struct {
	dst   model.Addr     // represents all of them
	hosts []model.NodeID // destinations that are hosts, not those reached through a net
	name  string         // for sentences
	net   bool           // to an owned prefix: not a pair of hosts
}

// trafficClasses lists the traffic to follow, each class once.
func (c *checker) trafficClasses() (all []traffic) {
	byClass := make(map[uint32]int)
	for i := range c.f.nodes {
		n := &c.f.nodes[i]
		touched := false
		for _, a := range c.touchedAddrs(n) {
			touched = true
			t := traffic{dst: a, name: fmt.Sprintf("%s (%v)", n.Name, a)}
			if !n.Role.IsSwitch() {
				t.hosts = []model.NodeID{n.ID}
			}
			all = append(all, t)
		}
		if touched {
			continue
		}
		class := c.r.dests[i].class
		at, ok := byClass[class]
		alone := !n.Role.IsSwitch() && c.besideHost(n.ID)
		if !ok || alone {
			at = len(all)
			all = append(all, traffic{dst: n.IPv4, name: n.Name})
		}
		if !alone {
			byClass[class] = at
		}
		if !n.Role.IsSwitch() {
			all[at].hosts = append(all[at].hosts, n.ID)
		}
	}
	seen := make(map[model.Addr]bool)
	addNet := func(a model.Addr, name string) {
		if !seen[a] {
			seen[a] = true
			all = append(all, traffic{dst: a, name: name, net: true})
		}
	}
	for i, o := range c.f.owned {
		if a, ok := c.addrInside(o.prefix, &c.r.dests[len(c.f.nodes)+i]); ok {
			addNet(a, o.prefix.String())
		}
	}
	// A static route to a part of an owned prefix is a separate class.
	for _, o := range c.r.cfg.Overrides {
		for _, a := range prefixBounds(o.To) {
			if _, node := c.f.byAddr.lookup(a); !node && c.r.dest(a) != nil {
				addNet(a, o.To.String())
			}
		}
	}
	return all
}

// touchedAddrs returns those of a node's addresses that a static route changes,
// one of two with the same change.
func (c *checker) touchedAddrs(n *Node) (out []model.Addr) {
	var sets [2][]uint32 // by static switch
	for i, a := range []model.Addr{n.IPv4, n.IPv6} {
		touched := false
		for _, row := range c.static {
			set := uint32(noRoute)
			if !c.r.isNodeAddr(c.f.switches[row], a) {
				set, _ = c.r.overrides[row].Lookup(a)
			}
			touched = touched || set != noRoute
			sets[i] = append(sets[i], set)
		}
		if touched && (i == 0 || !slices.Equal(sets[0], sets[1])) {
			out = append(out, a)
		}
	}
	// The unchanged one of two shares its class's traffic only if another node
	// represents the class; follow it too.
	if len(out) == 1 && !slices.Equal(sets[0], sets[1]) {
		return []model.Addr{n.IPv4, n.IPv6}
	}
	return out
}

// addrInside returns an address of the prefix that no longer prefix or node has.
func (c *checker) addrInside(p netip.Prefix, d *dest) (model.Addr, bool) {
	for _, a := range prefixBounds(p) {
		if c.r.dest(a) == d {
			return a, true
		}
	}
	return model.Addr{}, false
}

// prefixBounds returns the first and the last address of a prefix.
func prefixBounds(p netip.Prefix) []model.Addr {
	first := model.AddrOf(p.Masked().Addr())
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	last := first
	if bits < 64 {
		last.Hi |= ^uint64(0) >> bits
		bits = 64
	}
	if bits < 128 {
		last.Lo |= ^uint64(0) >> (bits - 64)
	}
	return []model.Addr{first, last}
}
