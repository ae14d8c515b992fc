package sim

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
)

// QueueReset empties the data queues of a switch once, as an operator or a PFC
// watchdog does to end a deadlock: their packets are dropped, and the
// neighbours resume.
type QueueReset struct{ Switch model.NodeID }

func (f QueueReset) String() string { return fmt.Sprintf("queues of switch %d reset", f.Switch) }

func (f QueueReset) check(n *Network) error { return n.hasSwitch(f.Switch) }

func (f QueueReset) apply(n *Network) func() {
	sw := n.nodes[f.Switch].sw
	for _, out := range sw.ports {
		for prio := range model.Priority(numPriorities) {
			for out.queues[prio].head != nil {
				sw.discard(out, out.queues[prio].pop())
			}
			out.nonEmpty &^= 1 << prio
		}
	}
	return func() {}
}

// discard drops a packet that was queued, and releases its buffer.
func (sw *Switch) discard(out *Port, p *Packet) {
	n := sw.net
	in, prio := p.ingress, p.Priority
	if !sw.buffer.ReleaseFast(in, prio, model.Bytes(p.buffered)) {
		sw.buffer.Release(in, prio, model.Bytes(p.buffered))
		if sw.buffer.ShouldResume(in, prio) {
			sw.buffer.SetPaused(in, prio, false)
			sw.ports[in-1].sendPause(prio, false)
		}
	}
	if n.observer != nil {
		n.observer.Dequeued(sw.w.now, p, out)
	}
	n.drop(p, out, DropReset)
}
