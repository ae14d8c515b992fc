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

// ParallelObserver is an Observer that can observe a network that runs on
// several cores; with any other, the network runs on one. It then gets Enqueued,
// Dequeued and Delivered of different nodes at the same time. Everything else is
// rare, and follows when the window has ended: node by node, in the order of
// their ids, as on one core.
type ParallelObserver interface {
	Observer
	// ObservesParallel prepares for flows with ids below flows, and reports
	// whether it can. It is called again when there are more.
	ObservesParallel(flows int) bool
}

// Observe sets the observer; nil is none.
func (n *Network) Observe(o Observer) {
	n.observer = o
	n.queueObserver, _ = o.(QueueObserver)
	n.sched.stale = true
}

// observation is what an observer gets when the window has ended.
type observation struct {
	now    engine.Time
	port   *Port // of the node that ran
	pkt    *Packet
	record int // index in worker.records
	kind   observationKind
	prio   model.Priority
	stop   bool
	why    Reason
}

type observationKind uint8

const (
	sawDrop observationKind = iota
	sawPauseFrame
	sawPauseChange
	sawFlowDone
)

// defersObserver reports whether other nodes may run at the same time, so that
// the observer has to wait for the end of the window.
func (w *worker) defersObserver() bool { return w.running != nil && w.net.sched.shared }

// observePause passes a pause frame, or a change that it causes, to the
// observer.
func (w *worker) observePause(kind observationKind, at *Port, prio model.Priority, stop bool) {
	o := observation{kind: kind, now: w.now, port: at, prio: prio, stop: stop}
	if w.defersObserver() {
		w.observed = append(w.observed, o)
		return
	}
	w.observe(&o)
}

// observe passes one observation to the observer.
func (w *worker) observe(o *observation) {
	to := w.net.observer
	switch o.kind {
	case sawDrop:
		to.Dropped(o.now, o.pkt, o.port, o.why)
		w.pool.put(o.pkt)
	case sawPauseFrame:
		to.PauseReceived(o.now, o.port, o.prio, o.stop)
	case sawPauseChange:
		to.PauseChanged(o.now, o.port, o.prio, o.stop)
	case sawFlowDone:
		to.FlowDone(o.now, &w.records[o.record])
	}
}

// showObserved passes the workers' observations of a window to the observer, in
// the order of nodes.
func (n *Network) showObserved() {
	s := &n.sched
	for {
		var next *worker
		for _, w := range s.workers {
			if w.shown < len(w.observed) && (next == nil || w.observed[w.shown].port.Node < next.observed[next.shown].port.Node) {
				next = w
			}
		}
		if next == nil {
			break
		}
		next.observe(&next.observed[next.shown])
		next.shown++
	}
	for _, w := range s.workers {
		clear(w.observed)
		w.observed, w.shown = w.observed[:0], 0
	}
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
