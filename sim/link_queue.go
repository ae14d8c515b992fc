package sim

import "github.com/weft-telemetry/weft/sim/engine"

// linkQueue holds the packets that travel to a port, in order of arrival: a link
// lets nothing overtake. They are linked through themselves, and each knows
// when the one behind it arrives, so that taking one off the wire needs no look
// at the next.
type linkQueue struct {
	head, tail *Packet
	at         engine.Time // when head arrives; Forever once the last has gone
}

// push adds a packet and tells whether it is the first.
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
	prefetch(w.head) // it is in the cache when its turn comes
	return pkt
}
