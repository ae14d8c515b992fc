package sim

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Observer observes what happens, for ground truth and plots. It must change
// nothing and keep no packet.
type Observer interface {
	Enqueued(now engine.Time, p *Packet, out *Port)
	Dequeued(now engine.Time, p *Packet, out *Port)
	Dropped(now engine.Time, p *Packet, at *Port, why Reason)
	Delivered(now engine.Time, p *Packet, to *Host)
	PauseReceived(now engine.Time, at *Port, prio model.Priority, stop bool) // every frame
	PauseChanged(now engine.Time, at *Port, prio model.Priority, stop bool)  // the state
	FlowDone(now engine.Time, r *FlowRecord)
}

// QueueObserver is an Observer that also sees what Enqueued leaves out: packets
// that join the queues of hosts and the control queue.
type QueueObserver interface {
	Observer
	Queued(now engine.Time, p *Packet, out *Port) // every packet, after its admission
}

// Observe sets the observer; nil is none.
func (n *Network) Observe(o Observer) {
	n.observer = o
	n.queueObserver, _ = o.(QueueObserver)
}

// NopObserver is an Observer that does nothing, to embed.
type NopObserver struct{}

// Enqueued and the others do nothing.
func (NopObserver) Enqueued(engine.Time, *Packet, *Port) {}

// Dequeued does nothing.
func (NopObserver) Dequeued(engine.Time, *Packet, *Port) {}

// Dropped does nothing.
func (NopObserver) Dropped(engine.Time, *Packet, *Port, Reason) {}

// Delivered does nothing.
func (NopObserver) Delivered(engine.Time, *Packet, *Host) {}

// PauseReceived does nothing.
func (NopObserver) PauseReceived(engine.Time, *Port, model.Priority, bool) {}

// PauseChanged does nothing.
func (NopObserver) PauseChanged(engine.Time, *Port, model.Priority, bool) {}

// FlowDone does nothing.
func (NopObserver) FlowDone(engine.Time, *FlowRecord) {}
