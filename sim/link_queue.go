package sim

import (
	"unsafe"

	"github.com/weft-telemetry/weft/sim/engine"
)

// linkQueue holds the packets in flight to a port, in order of arrival: a link
// does not reorder. It is an intrusive list in which each packet has the
// arrival time of the next, so that removing one does not touch the next.
type linkQueue struct {
	head, tail *Packet
	at         engine.Time // when head arrives; Forever if empty
}

// push adds a packet and reports whether it is the first.
func (w *linkQueue) push(at engine.Time, pkt *Packet) bool {
	last := w.tail
	pkt.next, w.tail = nil, pkt
	pkt.EnqueuedAt = engine.Forever
	if w.head == nil {
		w.head, w.at = pkt, at
		return true
	}
	last.next, last.EnqueuedAt = pkt, at
	return false
}

func (w *linkQueue) pop() *Packet {
	pkt := w.head
	w.head, w.at = pkt.next, pkt.EnqueuedAt
	prefetch(unsafe.Pointer(w.head)) // it is in the cache when it is removed
	return pkt
}
