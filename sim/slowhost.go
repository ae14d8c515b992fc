package sim

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// SlowReceiver makes a host take in packets no faster than Rate. What waits
// fills its receive buffer, and above half of that the host pauses its switch:
// a slow receiver looks like a storm from outside, and is none.
type SlowReceiver struct {
	Host     model.NodeID
	Rate     model.Rate
	Buffer   model.Bytes // of the NIC; 0: 256 KiB
	Priority model.Priority
}

const defaultNICBuffer = 256 * model.KiB

func (f SlowReceiver) String() string {
	return fmt.Sprintf("host %d receives at %v", f.Host, f.Rate)
}

func (f SlowReceiver) check(n *Network) error {
	if err := n.hasHost(f.Host); err != nil {
		return err
	}
	if f.Rate <= 0 || f.Buffer < 0 || f.Priority >= numPriorities {
		return fmt.Errorf("rate %v, buffer %v, priority %d, want a rate above 0, a buffer of at least 0 and a priority from 0 to 7", f.Rate, f.Buffer, f.Priority)
	}
	return nil
}

func (f SlowReceiver) begin(n *Network) func() {
	h := n.nodes[f.Host].host
	size := f.Buffer
	if size == 0 {
		size = defaultNICBuffer
	}
	h.slow = &slowIntake{rate: f.Rate, prio: f.Priority, stopAt: int64(size) / 2, goAt: int64(size) / 4}
	return func() {
		// What waits is taken in at once, and the switch may send again.
		s := h.slow
		h.slow = nil
		for s.waiting.head != nil {
			pkt := s.waiting.pop()
			h.process(h.ports[pkt.ingress-1], pkt)
		}
		s.pause(h, false)
	}
}

// slowIntake is the receive buffer of a slow host.
type slowIntake struct {
	rate         model.Rate
	prio         model.Priority
	stopAt, goAt int64 // bytes
	waiting      fifo
	pausing      bool
	busy         bool
}

// take queues a packet that arrived at port p.
func (s *slowIntake) take(h *Host, p *Port, pkt *Packet) {
	pkt.ingress = p.ID
	s.waiting.push(pkt)
	if s.waiting.bytes >= s.stopAt {
		s.pause(h, true)
	}
	if !s.busy {
		s.next(h)
	}
}

// next takes in the first packet when its time has passed.
func (s *slowIntake) next(h *Host) {
	s.busy = s.waiting.head != nil
	if !s.busy {
		return
	}
	n := h.net
	at := n.now + engine.Transmit(int64(s.waiting.head.Size), s.rate)
	h.node.timer(n, timer{at: at, kind: runProgram, run: func() {
		if h.slow != s || s.waiting.head == nil {
			return // the fault is over
		}
		pkt := s.waiting.pop()
		if s.waiting.bytes <= s.goAt {
			s.pause(h, false)
		}
		h.process(h.ports[pkt.ingress-1], pkt)
		s.next(h)
	}})
}

func (s *slowIntake) pause(h *Host, stop bool) {
	if s.pausing == stop {
		return
	}
	s.pausing = stop
	for _, p := range h.ports {
		p.sendPause(s.prio, stop)
	}
}
