package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
)

// Migration moves an address from one host to another, as in VM migration. The
// state of its flows moves at that instant; intended routes lead to the new
// host from then on, and tables follow one by one. Until all have, packets
// reach the old host, which drops them, or loop between switches that disagree;
// flows recover by retransmission.
type Migration struct {
	Addr model.Addr   // a host prefix (/32 or /128) of one host
	To   model.NodeID // a host

	// A switch's table follows after Delay and a random part of Spread, or
	// after its entry in Late.
	Delay, Spread time.Duration
	Late          map[model.NodeID]time.Duration
}

// Migrate schedules a migration.
func (n *Network) Migrate(at model.Time, m Migration) error {
	if err := n.checkMigration(&m); err != nil {
		return fmt.Errorf("sim: migration of %v: %w", m.Addr, err)
	}
	n.At(timeOf(at), func() { n.migrate(&m) })
	return nil
}

func (n *Network) checkMigration(m *Migration) error {
	owners := n.fabric.Owners(m.Addr)
	if len(owners) != 1 || n.fabric.Node(owners[0]).Role != topo.Host || !slices.Contains(n.fabric.Node(owners[0]).Nets,
		hostPrefix(m.Addr)) {
		return fmt.Errorf("not a prefix of exactly one host, want one such as %v", hostPrefix(m.Addr))
	}
	if n.hostAt(m.To) == nil || n.fabric.Node(m.To).Role != topo.Host {
		return fmt.Errorf("to node %d, want a host", m.To)
	}
	if m.Delay < 0 || m.Spread < 0 {
		return fmt.Errorf("delay %v and spread %v, want neither below 0", m.Delay, m.Spread)
	}
	for id, late := range m.Late {
		if err := n.hasSwitch(id); err != nil {
			return err
		}
		if late < 0 {
			return fmt.Errorf("switch %d follows after %v, want at least 0", id, late)
		}
	}
	return nil
}

// hostPrefix returns the prefix of one address.
func hostPrefix(a model.Addr) netip.Prefix {
	ip := a.Netip()
	return netip.PrefixFrom(ip, ip.BitLen())
}

func (n *Network) migrate(m *Migration) {
	rng := rand.New(rand.NewPCG(n.cfg.Seed, uint64(n.intentVersion)))
	n.SetIntendedRoutes(n.routesAfter(m), func(sw model.NodeID) time.Duration {
		d := m.Delay
		if m.Spread > 0 {
			d += time.Duration(rng.Int64N(int64(m.Spread)))
		}
		if late, named := m.Late[sw]; named {
			d = late
		}
		return d
	})
	n.rehomeFlows(m.Addr, n.Host(m.To))
}

// routesAfter returns the intended routes after a migration.
func (n *Network) routesAfter(m *Migration) *topo.Routes {
	cfg := n.routes.Config()
	moved := maps.Clone(cfg.Moved)
	if n.fabric.Owns(m.To, m.Addr) {
		delete(moved, m.Addr) // back at its home
	} else {
		if moved == nil {
			moved = make(map[model.Addr]model.NodeID)
		}
		moved[m.Addr] = m.To
	}
	cfg.Moved = moved
	routes, err := topo.NewRoutes(n.fabric, cfg)
	if err != nil {
		panic(err) // the same settings made routes before
	}
	return routes
}

// SetIntendedRoutes changes the intended routes from now on. The table of each
// switch follows after the delay that after returns; nil is at once. To change
// one thing and keep the rest, such as migrations, start from
// Routes().Config().
func (n *Network) SetIntendedRoutes(routes *topo.Routes, after func(sw model.NodeID) time.Duration) {
	if err := n.intent.Set(n.Now().Model(), routes); err != nil {
		panic(err) // time only advances, and the fabric is the network's: anything else is a bug of the caller
	}
	n.routes = routes
	n.intentVersion++
	version := n.intentVersion
	for _, sw := range n.switches {
		follow := func() {
			if sw.appliedVersion < version { // else a later change was applied first
				sw.appliedVersion = version
				sw.applyRoutes(routes)
			}
		}
		if after == nil {
			follow()
		} else if d := after(sw.ID); d <= 0 {
			follow()
		} else {
			n.At(n.Now()+engine.Of(d), follow)
		}
	}
}

// Routes returns the current intended routes.
func (n *Network) Routes() *topo.Routes { return n.routes }

// Intent returns the intended routes of all times so far, by simulated time.
// Callers must not change it.
func (n *Network) Intent() *topo.Intent { return n.intent }

// rehomeFlows moves the endpoints of flows at an address to another host.
func (n *Network) rehomeFlows(a model.Addr, h *Host) {
	n.tableVersion++ // paths that flows have learned are void
	for _, f := range n.flows {
		source, sink := f.key.Src == a, f.receiverAddr() == a
		if f.done || !source && !sink {
			continue
		}
		if source {
			f.rehomeSender(h)
		}
		if sink {
			f.dst, f.spec.Dst = h, h.ID
		}
		f.ackPort = n.egressPortOrFirst(f.dst, f.reverseKey)
	}
}

// receiverAddr returns the address of the flow's receiver: a backend's, where
// the destination is virtual.
func (f *flow) receiverAddr() model.Addr {
	if s := f.net.services[f.key.Dst]; s != nil {
		return s.pick(f.key)
	}
	return f.key.Dst
}

// rehomeSender makes another host the sender.
func (f *flow) rehomeSender(h *Host) {
	f.port.nic().remove(f)
	f.src, f.spec.Src = h, h.ID
	f.port = f.net.egressPortOrFirst(h, f.key)
	if at := f.timerAt; at != 0 {
		f.timerAt = 0
		f.wakeBy(at)
	}
	if f.begun && f.maySend() {
		f.activate()
	}
}

// remove removes a flow from the list that it is in.
func (c *nic) remove(f *flow) {
	switch f.nicState {
	case inWaiting:
		c.waiting.remove(f)
	case inRoundRobin:
		c.roundRobin.flows = slices.DeleteFunc(c.roundRobin.flows, func(g *flow) bool { return g == f })
	case inReady:
		if !c.ready.remove(f) {
			c.parked[f.prio].remove(f)
		}
	}
	f.nicState = notListed
}

// remove removes a flow from the list, if it is in it.
func (l *flowList) remove(f *flow) (found bool) {
	var rest flowList
	for g := l.pop(); g != nil; g = l.pop() {
		if g == f {
			found = true
		} else {
			rest.push(g)
		}
	}
	*l = rest
	return found
}

// remove removes a flow from the heap that it is in.
func (h *flowHeap) remove(f *flow) {
	a := *h
	i, last := slices.Index(a, f), len(a)-1
	a.swap(i, last)
	a[last] = nil
	*h = a[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
}
