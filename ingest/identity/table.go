// Package identity says which switch and port of the topology is meant by the names
// that switches on sale use of themselves: agent addresses, targets, ifIndexes,
// interface names, aliases and SAI objects. It knows what topology and
// configuration say, and learns the rest from sources, which share one Table.
// Manual: docs/sources.md.
package identity

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/weft-telemetry/weft/model"
)

// Switch is what topology and configuration say of a switch.
type Switch struct {
	ID    model.NodeID
	Name  string
	Addrs []netip.Addr // of its agents and management ports
	Ports int          // numbered from 1
	// Port returns the port with an interface's name or a number.
	Port func(text string) (model.PortID, bool)
	// Indexes are the ifIndexes that the configuration says. They are never
	// replaced by learned ones.
	Indexes map[uint32]model.PortID
}

// maxLearned is how many learned names and ifIndexes a switch may have for each of
// its ports, and maxExtra for interfaces that are no ports of the topology: a
// management port, VLANs, tunnels.
const (
	maxLearned = 8
	maxExtra   = 512
)

// Stats are the counters of a Table.
type Stats struct {
	Learned   uint64 // names and ifIndexes, at present
	Changed   uint64 // that came to mean another port: renamed, or renumbered at a restart
	Conflicts uint64 // refused, because the configuration says otherwise
	Full      uint64 // refused, because the switch has too many
}

// Table is the names of all switches. Several goroutines may use it.
type Table struct {
	byAddr map[netip.Addr]model.NodeID
	byName map[string]model.NodeID
	nodes  map[model.NodeID]*node

	mu    sync.RWMutex // guards what is learned
	stats Stats
}

type node struct {
	Switch
	indexes map[uint32]model.PortID // learned; 0: an interface that is no port
	aliases map[string]model.PortID
}

// New makes a table. Two switches with the same address are an error that names
// both.
func New(switches []Switch) (*Table, error) {
	t := &Table{byAddr: map[netip.Addr]model.NodeID{}, byName: map[string]model.NodeID{}, nodes: map[model.NodeID]*node{}}
	for _, s := range switches {
		for _, a := range s.Addrs {
			a = a.Unmap().WithZone("")
			if other, taken := t.byAddr[a]; taken && other != s.ID {
				return nil, fmt.Errorf("switches: %s and %s have the address %s, want different ones", t.nodes[other].Name, s.Name, a)
			}
			t.byAddr[a] = s.ID
		}
		t.byName[s.Name] = s.ID
		t.nodes[s.ID] = &node{Switch: s, indexes: map[uint32]model.PortID{}, aliases: map[string]model.PortID{}}
	}
	return t, nil
}

// NodeByAddr returns the switch with an address.
func (t *Table) NodeByAddr(a netip.Addr) (model.NodeID, bool) {
	id, ok := t.byAddr[a.Unmap().WithZone("")]
	return id, ok
}

// NodeByName returns the switch with a name.
func (t *Table) NodeByName(name string) (model.NodeID, bool) {
	id, ok := t.byName[name]
	return id, ok
}

// PortByIndex returns the port with an ifIndex. Port 0 is an interface of the switch
// that is no port of the topology. ok is false for an ifIndex that nothing is known of.
func (t *Table) PortByIndex(sw model.NodeID, ifIndex uint32) (p model.PortID, ok bool) {
	n := t.nodes[sw]
	if n == nil {
		return 0, false
	}
	if p, ok = n.Indexes[ifIndex]; ok {
		return p, true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	p, ok = n.indexes[ifIndex]
	return p, ok
}

// PortByName returns the port with an interface's name, a number, or a learned alias.
func (t *Table) PortByName(sw model.NodeID, name string) (model.PortID, bool) {
	n := t.nodes[sw]
	if n == nil {
		return 0, false
	}
	if p, ok := n.Port(name); ok {
		return p, true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	p, ok := n.aliases[name]
	return p, ok
}

// LearnIndex learns that an interface with a name has an ifIndex, and returns the
// port. One that was learned before is replaced: switches renumber at a restart.
func (t *Table) LearnIndex(sw model.NodeID, ifIndex uint32, name string) (model.PortID, bool) {
	n := t.nodes[sw]
	if n == nil || ifIndex == 0 {
		return 0, false
	}
	p, _ := t.PortByName(sw, name)
	if fixed, ok := n.Indexes[ifIndex]; ok {
		if fixed != p {
			t.count(func(s *Stats) { s.Conflicts++ })
		}
		return fixed, true
	}
	t.mu.RLock()
	old, known := n.indexes[ifIndex]
	t.mu.RUnlock()
	if known && old == p {
		return p, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return p, learn(t, n, n.indexes, ifIndex, p)
}

// LearnAlias learns that an alias, an object id or another name is the interface with a
// name.
func (t *Table) LearnAlias(sw model.NodeID, alias, name string) bool {
	n := t.nodes[sw]
	if n == nil || alias == "" {
		return false
	}
	p, ok := t.PortByName(sw, name)
	if !ok {
		return false
	}
	if own, taken := n.Port(alias); taken {
		if own != p {
			t.count(func(s *Stats) { s.Conflicts++ })
		}
		return own == p
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return learn(t, n, n.aliases, alias, p)
}

// learn sets an entry of a node's map, within its bound.
func learn[K comparable](t *Table, n *node, m map[K]model.PortID, key K, p model.PortID) bool {
	old, known := m[key]
	switch {
	case !known && len(m) >= maxLearned*n.Ports+maxExtra:
		t.stats.Full++
		return false
	case !known:
		t.stats.Learned++
	case old != p:
		t.stats.Changed++
	}
	m[key] = p
	return true
}

func (t *Table) count(f func(s *Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.stats)
}

// Stats returns the current counters.
func (t *Table) Stats() Stats {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.stats
}
