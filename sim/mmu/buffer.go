// Package mmu is the packet buffer of one switch as arithmetic: which packet is
// admitted, what it is charged to, and when PFC pauses or resumes a sender. It
// counts bytes per ingress port and priority; the packets themselves, their
// queues and the PFC frames belong to sim. Every operation is constant time and
// allocates nothing.
//
// A queue's bytes are charged to its reserve first, then to the shared buffer
// up to a threshold (Xoff), then to headroom, which is for lossless priorities
// only; they are released in the opposite order. A packet charged to headroom
// is charged there as a whole.
//
// HeadroomFor derives the headroom that is lossless. HPCCConfig reproduces the
// HPCC simulator, which drops on short links.
package mmu

import (
	"fmt"
	"math/bits"

	"github.com/weft-telemetry/weft/model"
)

// Buffer is the packet buffer of one switch. Ports are numbered from 1. Port 0
// is the switch CPU, for packets that arrived on no link: those that programs
// emit, and clones, which would use up the headroom of the original's port. It
// has no reserve, and as it has no sender to pause, every priority is lossy.
type Buffer struct {
	// free is the unused shared buffer. Invariant: free = sharedBytes - sum
	// over queues of max(0, bytes-reserve).
	free, sharedBytes int64

	queues [][Priorities]queue // by port and priority
	ports  []threshold

	offset      int64
	egressLimit int64
	accounted   uint8
	lossless    uint8
	hpcc        bool
}

// queue is what the buffer holds of one ingress port and priority.
type queue struct {
	bytes       int64 // in reserve and shared buffer
	headroom    int64 // in headroom
	noThreshold int64 // see AdmitFast
	reserve     int64
	limit       int64 // of headroom; 0 where lossy
	lossless    bool
	paused      bool
}

// shared returns the queue's bytes in the shared buffer.
func (q *queue) shared() int64 { return max(0, q.bytes-q.reserve) }

// threshold computes Xoff of a port.
type threshold struct {
	xoff, xon int64 // static where xoff > 0
	num       int64
	den       int64 // 0: shift instead
	shift     uint8
}

// New returns an empty buffer.
func New(c Config) (*Buffer, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	b := &Buffer{
		free: int64(c.SharedBytes()), sharedBytes: int64(c.SharedBytes()),
		queues: make([][Priorities]queue, len(c.Ports)+1),
		ports:  make([]threshold, len(c.Ports)+1),
		offset: int64(c.ResumeOffset), egressLimit: int64(c.EgressLimit),
		accounted: c.Accounted, lossless: c.Lossless, hpcc: c.HPCC,
	}
	b.ports[0] = threshold{num: 1, shift: hpccShift}
	for i, p := range c.Ports {
		b.ports[i+1] = p.threshold()
		for prio := range Priorities {
			q := &b.queues[i+1][prio]
			q.reserve = int64(c.Reserve)
			if q.lossless = c.Lossless>>prio&1 == 1; q.lossless {
				q.limit = int64(p.Headroom)
			}
			if c.Accounted>>prio&1 == 1 && !c.HPCC && (q.lossless || c.EgressLimit == 0) {
				q.noThreshold = q.reserve
			}
		}
	}
	return b, nil
}

func (p Port) threshold() threshold {
	t := threshold{xoff: int64(p.Xoff), xon: int64(p.Xon), num: int64(p.Alpha.Num)}
	if den := p.Alpha.Den; bits.OnesCount32(den) == 1 {
		t.shift = uint8(bits.TrailingZeros32(den))
	} else {
		t.den = int64(den)
	}
	return t
}

// xoffAt returns Xoff when that much of the shared buffer is free.
func (t *threshold) xoffAt(free int64) int64 {
	switch {
	case t.xoff > 0:
		return t.xoff
	case t.den == 0:
		return free * t.num >> t.shift
	}
	return free * t.num / t.den
}

func (b *Buffer) queue(port model.PortID, prio model.Priority) *queue {
	return &b.queues[port][prio%Priorities]
}

// Admit charges a packet to its queue. False means that the buffer is full: the
// packet is dropped and nothing was charged.
func (b *Buffer) Admit(port model.PortID, prio model.Priority, size model.Bytes) bool {
	if b.accounted>>(prio%Priorities)&1 == 0 {
		return true
	}
	q, n := b.queue(port, prio), int64(size)
	over := q.bytes + n - q.reserve
	if over <= 0 && !b.hpcc {
		q.bytes += n
		return true
	}
	xoff := b.ports[port].xoffAt(b.free)
	if b.hpcc && q.headroom+n > q.limit && q.shared()+n > xoff {
		return false
	}
	// The second condition matters where Xoff is static or alpha above 1.
	if take := max(0, min(n, over)); over <= 0 || over <= xoff && take <= b.free {
		q.bytes += n
		b.free -= take
		return true
	}
	if q.headroom+n > q.limit {
		return false
	}
	q.headroom += n
	return true
}

// Release releases a packet that Admit charged, of the same size.
func (b *Buffer) Release(port model.PortID, prio model.Priority, size model.Bytes) {
	if b.accounted>>(prio%Priorities)&1 == 0 {
		return
	}
	q, n := b.queue(port, prio), int64(size)
	fromHeadroom := min(q.headroom, n)
	q.headroom -= fromHeadroom
	n -= fromHeadroom
	b.free += min(n, q.shared())
	q.bytes -= n
	if q.bytes < 0 {
		panic(fmt.Sprintf("mmu: port %d priority %d: released %v, %v more than it held", port, prio, size,
			model.Bytes(-q.bytes)))
	}
}

// ShouldPause reports whether a PAUSE is due to the sender on a port: it is not
// paused, and its queue has reached Xoff or uses headroom. Call it after every
// Admit; report the action with SetPaused.
func (b *Buffer) ShouldPause(port model.PortID, prio model.Priority) bool {
	q := b.queue(port, prio)
	if q.paused || !q.lossless {
		return false
	}
	if q.headroom > 0 {
		return true
	}
	shared := q.shared()
	if shared == 0 && !b.hpcc {
		return false // the reserve is the queue's own, whatever the others hold
	}
	return shared >= b.ports[port].xoffAt(b.free)
}

// ShouldResume reports whether a RESUME is due: the sender is paused, headroom
// is empty, and the queue's shared bytes are ResumeOffset below Xoff, or none.
// Call it after every Release; only then can it become true.
func (b *Buffer) ShouldResume(port model.PortID, prio model.Priority) bool {
	q := b.queue(port, prio)
	if !q.paused || q.headroom > 0 {
		return false
	}
	shared, t := q.shared(), &b.ports[port]
	switch {
	case shared == 0:
		return true
	case t.xoff > 0:
		return shared <= t.xon
	}
	return shared+b.offset <= t.xoffAt(b.free)
}

// SetPaused records that the sender on a port was paused or resumed.
func (b *Buffer) SetPaused(port model.PortID, prio model.Priority, paused bool) {
	b.queue(port, prio).paused = paused
}

// Paused returns the state that SetPaused recorded.
func (b *Buffer) Paused(port model.PortID, prio model.Priority) bool {
	return b.queue(port, prio).paused
}

// AdmitFast, ReleaseFast and FitsUnqueued are the fast path of a packet whose
// queue stays within its reserve, as most do: then no sender is paused or
// resumed, and neither thresholds nor other queues matter. Each is small enough
// to be inlined. Where one returns false it has done nothing, and the slow path
// decides.
//
// Invariant: noThreshold is a queue's reserve, or 0 where other rules apply:
// HPCC's, a limit at the egress, a priority that is not accounted.

// AdmitFast replaces TailDrop, Admit and ShouldPause: true means that the
// packet is charged and no pause is due.
func (b *Buffer) AdmitFast(port model.PortID, prio model.Priority, size model.Bytes) bool {
	q := b.queue(port, prio)
	after := q.bytes + int64(size)
	if after > q.noThreshold || q.headroom != 0 {
		return false
	}
	q.bytes = after
	return true
}

// ReleaseFast replaces Release and ShouldResume: true means that the packet is
// released and no resume is due.
func (b *Buffer) ReleaseFast(port model.PortID, prio model.Priority, size model.Bytes) bool {
	q := b.queue(port, prio)
	after := q.bytes - int64(size)
	if q.bytes > q.noThreshold || q.headroom != 0 || q.paused || after < 0 {
		return false
	}
	q.bytes = after
	return true
}

// FitsUnqueued replaces AdmitFast and ReleaseFast at one instant.
func (b *Buffer) FitsUnqueued(port model.PortID, prio model.Priority, size model.Bytes) bool {
	q := b.queue(port, prio)
	return q.bytes+int64(size) <= q.noThreshold && q.headroom == 0 && !q.paused
}

// TailDrop reports whether a packet must be dropped because its egress queue,
// which holds queued bytes, is full. Lossless priorities have no such limit:
// their senders are paused instead.
func (b *Buffer) TailDrop(prio model.Priority, queued, size model.Bytes) bool {
	return b.egressLimit > 0 && b.lossless>>(prio%Priorities)&1 == 0 && int64(queued+size) > b.egressLimit
}

// Threshold returns the current Xoff of a port's queues.
func (b *Buffer) Threshold(port model.PortID) model.Bytes {
	return model.Bytes(b.ports[port].xoffAt(b.free))
}

// Shared returns the used bytes of the shared buffer.
func (b *Buffer) Shared() model.Bytes { return model.Bytes(b.sharedBytes - b.free) }

// Usage returns what a queue holds, by where it is charged.
func (b *Buffer) Usage(port model.PortID, prio model.Priority) (reserve, shared, headroom model.Bytes) {
	q := b.queue(port, prio)
	s := q.shared()
	return model.Bytes(q.bytes - s), model.Bytes(s), model.Bytes(q.headroom)
}
