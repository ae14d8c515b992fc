// Package fib is the actual forwarding state of switches. It starts as the
// intended routes and may deviate from them: a stale entry, a blackhole, a port
// that drops one flow. Intended routes are in topo and do not change here.
//
// Only code that forwards packets, or scores an analysis afterwards, may import
// this package; an analysis that could read it would know the answer.
package fib

import (
	"fmt"
	"net/netip"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/lpm"
)

// Verdict is the result of a lookup.
type Verdict uint8

// Verdicts. The two kinds of drop have separate counters.
const (
	NoRoute Verdict = iota // no entry: the packet is dropped
	Forward                // through the port, or to the CPU where it is 0
	Drop                   // by an explicit drop entry
)

var verdictNames = [...]string{NoRoute: "no route", Forward: "forward", Drop: "drop"}

// String prints the verdict.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// Table is the forwarding state of one node. An entry for the flow takes
// precedence over one for the longest prefix, which takes precedence over the
// intended route; the node's own addresses are intended routes like others, so
// an entry can hide them.
//
// Lookup may be called concurrently; changing a Table needs exclusive access.
type Table struct {
	routes   *topo.Routes
	node     model.NodeID
	flows    map[model.FlowKey][]model.PortID // no port: drop
	prefixes lpm.Table[[]model.PortID]        // no port: drop
	plain    bool                             // neither flows nor prefixes
}

// New makes the table of a node that follows the intended routes.
func New(routes *topo.Routes, node model.NodeID) *Table {
	return &Table{routes: routes, node: node, flows: make(map[model.FlowKey][]model.PortID), plain: true}
}

// Node returns the node the table belongs to.
func (t *Table) Node() model.NodeID { return t.node }

// SetRoutes replaces the intended routes; explicit entries stay.
func (t *Table) SetRoutes(routes *topo.Routes) { t.routes = routes }

// Lookup returns where a packet of the flow goes. It allocates nothing.
func (t *Table) Lookup(key model.FlowKey) (model.PortID, Verdict) {
	if !t.plain {
		switch ports, ok := t.entry(key); {
		case ok && len(ports) == 0:
			return 0, Drop
		case ok:
			return t.routes.Pick(t.node, key, ports), Forward
		}
	}
	port, ok := t.routes.NextHop(t.node, key)
	if !ok {
		return 0, NoRoute
	}
	return port, Forward
}

// Candidates returns all ports among which Lookup chooses for a packet of the
// flow, for switches that spread the packets of a flow. The caller must not
// change them. It allocates nothing.
func (t *Table) Candidates(key model.FlowKey) ([]model.PortID, Verdict) {
	if !t.plain {
		switch ports, ok := t.entry(key); {
		case ok && len(ports) == 0:
			return nil, Drop
		case ok:
			return ports, Forward
		}
	}
	ports := t.routes.NextHops(t.node, key.Dst)
	if len(ports) == 0 {
		return nil, NoRoute
	}
	return ports, Forward
}

// entry returns the ports of the entry that applies to a flow, if there is one.
func (t *Table) entry(key model.FlowKey) ([]model.PortID, bool) {
	if ports, ok := t.flows[key]; ok {
		return ports, true
	}
	return t.prefixes.Lookup(key.Dst)
}

// SetFlow adds an entry for one flow with these ports; it takes precedence over
// all others. Without ports the flow is dropped.
func (t *Table) SetFlow(key model.FlowKey, ports ...model.PortID) error {
	if err := t.checkPorts(ports); err != nil {
		return fmt.Errorf("set flow %v: %w", key, err)
	}
	t.flows[key] = append([]model.PortID{}, ports...)
	t.plain = false
	return nil
}

// SetPrefix adds an entry for a prefix with these ports; the node's hash spreads
// flows over them. Without ports packets are dropped.
func (t *Table) SetPrefix(p netip.Prefix, ports ...model.PortID) error {
	if !p.IsValid() || p.Addr().Is4In6() {
		return fmt.Errorf("set prefix %v, want one such as 10.0.0.0/8", p)
	}
	if err := t.checkPorts(ports); err != nil {
		return fmt.Errorf("set prefix %v: %w", p, err)
	}
	t.prefixes.Set(p, append([]model.PortID{}, ports...))
	t.plain = false
	return nil
}

// SetDest is SetPrefix of one address.
func (t *Table) SetDest(a model.Addr, ports ...model.PortID) error {
	return t.SetPrefix(hostPrefix(a), ports...)
}

// RemoveFlow removes a flow's entry and reports whether there was one.
func (t *Table) RemoveFlow(key model.FlowKey) bool {
	_, ok := t.flows[key]
	delete(t.flows, key)
	t.updatePlain()
	return ok
}

// RemovePrefix removes a prefix's entry and reports whether there was one.
func (t *Table) RemovePrefix(p netip.Prefix) bool {
	if !p.IsValid() {
		return false
	}
	ok := t.prefixes.Delete(p)
	t.updatePlain()
	return ok
}

// RemoveDest is RemovePrefix of one address.
func (t *Table) RemoveDest(a model.Addr) bool { return t.RemovePrefix(hostPrefix(a)) }

// Reset removes all entries: the node follows the intended routes again.
func (t *Table) Reset() {
	clear(t.flows)
	t.prefixes = lpm.Table[[]model.PortID]{}
	t.updatePlain()
}

// updatePlain sets plain, with which Lookup uses the intended routes directly.
func (t *Table) updatePlain() { t.plain = len(t.flows) == 0 && t.prefixes.Empty() }

func (t *Table) checkPorts(ports []model.PortID) error {
	n := t.routes.Fabric().Node(t.node)
	for _, p := range ports {
		if n.Port(p) == nil {
			return fmt.Errorf("port %d of %s, want one from 1 to %d", p, n.Name, len(n.Ports))
		}
	}
	return nil
}

func hostPrefix(a model.Addr) netip.Prefix {
	ip := a.Netip()
	return netip.PrefixFrom(ip, ip.BitLen())
}
