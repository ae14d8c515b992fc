package sim

import "github.com/weft-telemetry/weft/sim/engine"

// Hooks and cores: a network that runs on several cores runs nodes at the same
// time. A hook that touches nothing but its own node is node-local and may run
// with them. A node with any other hook is pinned: such nodes run on one core,
// in the order of their ids, so that their hooks can share state as if there
// were only that core. They must still not touch what is not theirs, such as
// other nodes and tables.

// NodeLocal is a Program or FlowObserver that can say that its state belongs to
// its node: hooks of other nodes do not touch it, or synchronize.
type NodeLocal interface {
	NodeLocal() bool
}

func isNodeLocal(hook any) bool {
	l, ok := hook.(NodeLocal)
	return ok && l.NodeLocal()
}

// pin makes a node run on the first worker from the next window on.
func (n *Network) pin(nd *node) {
	if !nd.pinned {
		nd.pinned, n.sched.stale = true, true
	}
}

// UseOneCore makes the network run on one core, whatever SetCores says: for
// hooks that touch more than their node.
func (n *Network) UseOneCore() { n.sched.oneCore, n.sched.stale = true, true }

// Tap is called with every packet as it starts to leave a port. It must not keep
// it, nor change it, except for the DSCP mark of a host's own packets.
type Tap func(now engine.Time, p *Packet)

// Tap returns the port's tap, nil usually; another that replaces it can call it.
func (p *Port) Tap() Tap { return p.tap }

// SetTap sets the port's tap; nil is none.
func (p *Port) SetTap(t Tap) {
	p.tap = t
	if t != nil {
		p.w.net.pin(p.node)
	}
}

// SetLocalTap is SetTap for a tap that is node-local.
func (p *Port) SetLocalTap(t Tap) { p.tap = t }

// DropTap is called with every packet that a switch drops and knows of. It must
// not keep it, nor change it.
type DropTap func(p *Packet, at *Port, why Reason)

// DropTap returns the switch's tap, nil usually; another that replaces it can
// call it.
func (sw *Switch) DropTap() DropTap { return sw.dropTap }

// SetDropTap sets the switch's tap; nil is none.
func (sw *Switch) SetDropTap(t DropTap) {
	sw.dropTap = t
	sw.net.pin(sw.node)
}

// Receiver returns what SetReceiver has set.
func (h *Host) Receiver() func(p *Packet) { return h.receiver }

// SetReceiver sets what is called with packets of no flow for this host, nil for
// nothing; the host returns them to the pool afterwards.
func (h *Host) SetReceiver(receive func(p *Packet)) {
	h.receiver = receive
	h.net.pin(h.node)
}
