package truth

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// queueCounts counts what went through each switch queue, and what else is
// needed to find a packet that was silently lost.
type queueCounts struct {
	by []queueCount // by port × priorities

	dropped    int64 // without pause frames
	hostFrames int64 // pause frames of hosts, received or lost
}

type queueCount struct {
	in, out Count
	last    engine.Time // when it last sent
}

func (q *queueCounts) enqueued(queue int32, p *sim.Packet) {
	c := &q.by[queue].in
	c.Packets++
	c.Bytes += model.Bytes(p.Size)
}

func (q *queueCounts) dequeued(now engine.Time, queue int32, p *sim.Packet) {
	c := &q.by[queue]
	c.out.Packets++
	c.out.Bytes += model.Bytes(p.Size)
	c.last = now
}

func (q *queueCounts) lost(p *sim.Packet, at *sim.Port) {
	switch {
	case p.Kind != sim.KindPFC:
		q.dropped++
	case at.Host() != nil:
		q.hostFrames++
	}
}

// Conserved reports packets that were lost or created without a record. At any
// time: each switch queue holds what was enqueued and not dequeued, and packets
// that hosts and switches sent are delivered, consumed, dropped, queued (in
// switches, or at a slow receiver), or in flight, as many as the links can
// hold. When the network is Idle nothing can be in flight, and the counts must
// balance to the packet.
func (r *Recorder) Conserved() error {
	if r.queues == nil {
		return fmt.Errorf("truth: conservation is not recorded, want Options.Conserve")
	}
	counts := &r.net.Counts
	sent, queued, room := counts.Originated-r.queues.hostFrames, int64(0), int64(0)
	for _, h := range r.net.Hosts() {
		queued += h.ReceiveBacklog()
	}
	for i, p := range r.net.Ports() {
		room += r.onWire(int32(i))
		if p.Host() != nil {
			sent += p.TxPkts
			continue
		}
		for prio := range model.Priority(priorities) {
			c := &r.queues.by[i*priorities+int(prio)]
			want := Count{c.in.Packets - c.out.Packets, c.in.Bytes - c.out.Bytes}
			if got := waitingIn(p, prio); got != want {
				return fmt.Errorf("truth: port %v priority %d holds %v, want %v: %v enqueued, %v dequeued", r.name(int32(i)), prio,
					got, want, c.in, c.out)
			}
			queued += want.Packets
		}
		_, control := p.ControlQueue()
		queued += int64(control)
	}
	wire := sent - counts.Delivered - counts.Consumed - r.queues.dropped - queued
	if r.net.Idle() {
		room = 0
	}
	if wire < 0 || wire > room {
		return fmt.Errorf("truth: %d packets sent, %d delivered, %d consumed, %d dropped, %d queued: %d left over, want 0 to %d in flight",
			sent, counts.Delivered, counts.Consumed, r.queues.dropped, queued, wire, room)
	}
	return nil
}

// onWire returns how many packets of minimum size a port's link holds: those
// propagating, and one that is being sent.
func (r *Recorder) onWire(port int32) int64 {
	if r.net.Ports()[port].TxPkts == 0 {
		return 0
	}
	l := r.net.Fabric().Port(r.name(port)).LinkSpec
	return int64(engine.Of(l.Delay)/engine.Transmit(leastFrame, l.Rate)) + 2
}

const leastFrame = 60 // bytes, without checksum
