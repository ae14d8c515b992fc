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

// Move takes an address from one host to another, as a virtual machine moves.
// What its flows have sent and received moves with it at that instant; routes
// are intended to lead to the new host from then on, and tables follow one by
// one. Until all have, packets go to the old host, which drops them, or round
// and round between switches that disagree; flows recover by what their
// transport does about loss.
type Move struct {
	Addr model.Addr   // a net of full length of one host
	To   model.NodeID // a host

	// A switch's table follows after Delay and a random part of Spread, or
	// after what Late says of it.
	Delay, Spread time.Duration
	Late          map[model.NodeID]time.Duration
}

// Move schedules a move.
func (n *Network) Move(at model.Time, m Move) error {
	if err := n.checkMove(&m); err != nil {
		return fmt.Errorf("sim: move of %v: %w", m.Addr, err)
	}
	n.At(timeOf(at), func() { n.move(&m) })
	return nil
}

func (n *Network) checkMove(m *Move) error {
	owners := n.fabric.Owners(m.Addr)
	if len(owners) != 1 || n.fabric.Node(owners[0]).Role != topo.Host || !slices.Contains(n.fabric.Node(owners[0]).Nets, single(m.Addr)) {
		return fmt.Errorf("it is not a net of one host alone, want one such as %v", single(m.Addr))
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

// single is the prefix of one address.
func single(a model.Addr) netip.Prefix {
	ip := a.Netip()
	return netip.PrefixFrom(ip, ip.BitLen())
}

func (n *Network) move(m *Move) {
	rng := rand.New(rand.NewPCG(n.cfg.Seed, uint64(n.intended)))
	n.Intend(n.routesTo(m), func(sw model.NodeID) time.Duration {
		d := m.Delay
		if m.Spread > 0 {
			d += time.Duration(rng.Int64N(int64(m.Spread)))
		}
		if late, named := m.Late[sw]; named {
			d = late
		}
		return d
	})
	n.rehome(m.Addr, n.Host(m.To))
}

// routesTo is the intended routes with an address at another host.
func (n *Network) routesTo(m *Move) *topo.Routes {
	cfg := n.routes.Config()
	moved := maps.Clone(cfg.Moved)
	if n.fabric.Owns(m.To, m.Addr) {
		delete(moved, m.Addr) // home again
	} else {
		if moved == nil {
			moved = make(map[model.Addr]model.NodeID)
		}
		moved[m.Addr] = m.To
	}
	cfg.Moved = moved
	routes, err := topo.NewRoutes(n.fabric, cfg)
	if err != nil {
		panic(err) // the rest of it made routes before
	}
	return routes
}

// Intend changes the intended routes from the present on. The table of each
// switch follows after the time that after says; nil is at once. To change one
// thing and keep the rest, such as moves, start from Routes().Config().
func (n *Network) Intend(routes *topo.Routes, after func(sw model.NodeID) time.Duration) {
	if err := n.intent.Set(n.now.Model(), routes); err != nil {
		panic(err) // time goes on, and the fabric is the network's: anything else is a mistake of the caller
	}
	n.routes = routes
	n.intended++
	version := n.intended
	for _, sw := range n.switches {
		follow := func() {
			if sw.follows < version { // else a later change was faster
				sw.follows = version
				sw.follow(routes)
			}
		}
		if after == nil {
			follow()
		} else if d := after(sw.ID); d <= 0 {
			follow()
		} else {
			n.At(n.now+engine.Of(d), follow)
		}
	}
}

// Routes returns the intended routes of the present.
func (n *Network) Routes() *topo.Routes { return n.routes }

// Intent returns the intended routes of all times so far, by the time of the
// run. Its holder must not change it.
func (n *Network) Intent() *topo.Intent { return n.intent }

// rehome moves the ends of flows that are at an address to another host.
func (n *Network) rehome(a model.Addr, h *Host) {
	n.routing++ // what flows know of their ways is about others
	for _, f := range n.flows {
		source, sink := f.key.Src == a, f.sinkAddr() == a
		if f.done || !source && !sink {
			continue
		}
		if source {
			f.leave(h)
		}
		if sink {
			f.dst, f.spec.Dst = h, h.ID
		}
		f.home = n.exitOr(f.dst, f.back)
	}
}

// sinkAddr is the address that the flow's receiver has: a backend's, where the
// destination is virtual.
func (f *flow) sinkAddr() model.Addr {
	if s := f.net.services[f.key.Dst]; s != nil {
		return s.pick(f.key)
	}
	return f.key.Dst
}

// leave makes another host the sender.
func (f *flow) leave(h *Host) {
	f.port.nic().remove(f)
	f.src, f.spec.Src = h, h.ID
	f.port = f.net.exitOr(h, f.key)
	if at := f.timerAt; at != 0 {
		f.timerAt = 0
		f.wakeBy(at)
	}
	if f.begun && f.maySend() {
		f.activate()
	}
}

// remove takes a flow out of whatever list it is in.
func (c *nic) remove(f *flow) {
	switch f.place {
	case inWaiting:
		c.waiting.remove(f)
	case inTurns:
		c.turns.flows = slices.DeleteFunc(c.turns.flows, func(g *flow) bool { return g == f })
	case inReady:
		if !c.ready.remove(f) {
			c.parked[f.prio].remove(f)
		}
	}
	f.place = nowhere
}

// remove takes a flow out of the list, if it is in it.
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

// remove takes a flow out of the heap it is in.
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
