package sim

import (
	"fmt"
	"slices"

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
	if f.Buffer == 0 {
		f.Buffer = defaultNICBuffer
	}
	s := h.slow
	if s == nil {
		s = &slowIntake{host: h}
		s.done = s.takeIn
		h.slow = s
	}
	s.faults = append(s.faults, &f)
	s.settle()
	return func() {
		s.faults = slices.DeleteFunc(s.faults, func(other *SlowReceiver) bool { return other == &f })
		if len(s.faults) > 0 {
			s.settle()
			return
		}
		// What waits is taken in at once, and the switch may send again.
		h.slow = nil
		for s.waiting.head != nil {
			pkt := s.waiting.pop()
			h.process(h.ports[pkt.ingress-1], pkt)
		}
		s.pause(false)
	}
}

// slowIntake is the receive buffer of a slow host. Of several faults at once
// the slowest sets the rate, and the newest the rest.
type slowIntake struct {
	host         *Host
	faults       []*SlowReceiver
	rate         model.Rate
	prio         model.Priority
	stopAt, goAt int64 // bytes
	waiting      fifo
	pausing      bool
	busy         bool
	done         func() // takeIn
}

// settle takes its figures from the faults there are.
func (s *slowIntake) settle() {
	newest := s.faults[len(s.faults)-1]
	if newest.Priority != s.prio {
		s.pause(false)
	}
	s.prio, s.rate = newest.Priority, newest.Rate
	for _, f := range s.faults {
		s.rate = min(s.rate, f.Rate)
	}
	s.stopAt, s.goAt = int64(newest.Buffer)/2, int64(newest.Buffer)/4
	if s.waiting.bytes >= s.stopAt {
		s.pause(true)
	}
}

// take queues a packet that arrived at port p.
func (s *slowIntake) take(p *Port, pkt *Packet) {
	pkt.ingress = p.ID
	s.waiting.push(pkt)
	if s.waiting.bytes >= s.stopAt {
		s.pause(true)
	}
	if !s.busy {
		s.next()
	}
}

// next takes in the first packet when its time has passed.
func (s *slowIntake) next() {
	s.busy = s.waiting.head != nil
	if s.busy {
		n := s.host.net
		at := n.now + engine.Transmit(int64(s.waiting.head.Size), s.rate)
		s.host.node.timer(n, timer{at: at, kind: runProgram, run: s.done})
	}
}

func (s *slowIntake) takeIn() {
	if s.waiting.head == nil {
		return // the fault is over
	}
	pkt := s.waiting.pop()
	if s.waiting.bytes <= s.goAt {
		s.pause(false)
	}
	s.host.process(s.host.ports[pkt.ingress-1], pkt)
	s.next()
}

func (s *slowIntake) pause(stop bool) {
	if s.pausing != stop {
		s.pausing = stop
		s.host.pause(s.prio, stop)
	}
}
