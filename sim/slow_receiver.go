package sim

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// SlowReceiver makes a host drain packets no faster than Rate. Packets fill its
// receive buffer, and above half of it the host pauses its switch: the switch
// sees the same as in a PFC storm.
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

func (f SlowReceiver) apply(n *Network) func() {
	h := n.nodes[f.Host].host
	if f.Buffer == 0 {
		f.Buffer = defaultNICBuffer
	}
	s := h.slowRx
	if s == nil {
		s = &slowRxBuffer{host: h}
		s.drained = s.drainOne
		h.slowRx = s
	}
	s.faults = append(s.faults, &f)
	s.applyFaults()
	return func() {
		s.faults = slices.DeleteFunc(s.faults, func(other *SlowReceiver) bool { return other == &f })
		if len(s.faults) > 0 {
			s.applyFaults()
			return
		}
		// The backlog is drained at once, and the switch resumes.
		h.slowRx = nil
		for s.waiting.head != nil {
			pkt := s.waiting.pop()
			h.deliver(h.ports[pkt.ingress-1], pkt)
		}
		s.pause(false)
	}
}

// slowRxBuffer is the receive buffer of a slow host. Of several faults at once
// the slowest sets the rate, and the newest the rest.
type slowRxBuffer struct {
	host                *Host
	faults              []*SlowReceiver
	rate                model.Rate
	prio                model.Priority
	xoffBytes, xonBytes int64 // bytes
	waiting             fifo
	pausing             bool
	busy                bool
	drained             func() // drainOne
}

// applyFaults takes rate, priority and thresholds from the active faults.
func (s *slowRxBuffer) applyFaults() {
	newest := s.faults[len(s.faults)-1]
	if newest.Priority != s.prio {
		s.pause(false)
	}
	s.prio, s.rate = newest.Priority, newest.Rate
	for _, f := range s.faults {
		s.rate = min(s.rate, f.Rate)
	}
	s.xoffBytes, s.xonBytes = int64(newest.Buffer)/2, int64(newest.Buffer)/4
	if s.waiting.bytes >= s.xoffBytes {
		s.pause(true)
	}
}

// enqueue buffers a packet that arrived at port p.
func (s *slowRxBuffer) enqueue(p *Port, pkt *Packet) {
	pkt.ingress = p.ID
	s.waiting.push(pkt)
	if s.waiting.bytes >= s.xoffBytes {
		s.pause(true)
	}
	if !s.busy {
		s.startDrain()
	}
}

// startDrain schedules the first packet for when its transmission time has
// passed.
func (s *slowRxBuffer) startDrain() {
	s.busy = s.waiting.head != nil
	if s.busy {
		at := s.host.w.now + engine.Transmit(int64(s.waiting.head.Size), s.rate)
		s.host.node.addTimer(timer{at: at, kind: runFunc, run: s.drained})
	}
}

func (s *slowRxBuffer) drainOne() {
	if s.waiting.head == nil {
		return // the fault is over
	}
	pkt := s.waiting.pop()
	if s.waiting.bytes <= s.xonBytes {
		s.pause(false)
	}
	s.host.deliver(s.host.ports[pkt.ingress-1], pkt)
	s.startDrain()
}

func (s *slowRxBuffer) pause(stop bool) {
	if s.pausing != stop {
		s.pausing = stop
		s.host.pause(s.prio, stop)
	}
}
