package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// Counter is a counter of a switch that may be wrong.
type Counter uint8

// Counters.
const (
	TxPackets Counter = iota
	TxBytes
	RxPackets
	RxBytes
	FlowsetPackets // of a switch: packets that its flowset counts
	NumCounters
)

var counterNames = [NumCounters]string{"tx-packets", "tx-bytes", "rx-packets", "rx-bytes", "flowset"}

// String returns the counter's name.
func (c Counter) String() string { return counterNames[c] }

// CounterNamed returns a counter by its name.
func CounterNamed(name string) (Counter, bool) {
	i := slices.Index(counterNames[:], name)
	return Counter(max(i, 0)), i >= 0
}

// CounterNames returns the names of all counters.
func CounterNames() []string { return counterNames[:] }

// Miscount makes a counter of a switch count more or less than passed. Packets are not
// affected.
type Miscount struct {
	Port    model.Port // of a flowset: port 0 of the switch
	Counter Counter
	Factor  float64 // of the true number; 0: nothing is counted; at most 2
}

func (f Miscount) String() string {
	return fmt.Sprintf("counter %v of port %v counts %.4g times the true number", f.Counter, f.Port, f.Factor)
}

func (f Miscount) check(n *Network) error {
	err := n.hasSwitch(f.Port.Node)
	if f.Counter != FlowsetPackets {
		err = errors.Join(err, n.hasPort(f.Port))
	}
	if f.Counter >= NumCounters || f.Factor < 0 || f.Factor > 2 {
		err = errors.Join(err, fmt.Errorf("counter %d, factor %v; want a counter, and 0 to 2", f.Counter, f.Factor))
	}
	return err
}

func (f Miscount) apply(n *Network) func() {
	m := &miscount{counter: f.Counter, more: f.Factor - 1}
	sw := n.nodes[f.Port.Node].sw
	if f.Counter == FlowsetPackets {
		sw.miscounts = append(sw.miscounts, m)
	} else {
		p := n.Port(f.Port)
		if tx := p.sent(); int(f.Counter) < len(tx) {
			m.begun, m.last = true, tx[f.Counter]
		}
		p.miscounts = append(p.miscounts, m)
	}
	return func() { m.more = 0 } // what was counted wrongly stays in the total
}

// miscount is a counter that is wrong.
type miscount struct {
	counter Counter
	more    float64 // of what is counted, too much
	begun   bool
	last    uint64  // of the true total
	error   float64 // of the total
}

// reported returns what a counter of the port shows. Totals are given in order.
func (p *Port) reported(c Counter, total uint64) uint64 {
	shown := float64(0)
	for _, m := range p.miscounts {
		if m.counter != c {
			continue
		}
		if m.begun {
			m.error += m.more * float64(total-m.last)
		}
		m.begun, m.last = true, total
		shown += m.error
	}
	return total + uint64(int64(shown))
}

// Sent returns the packets and bytes that left the port, without pause frames, as its
// counters show them: by TxPackets and TxBytes.
func (p *Port) Sent() [2]uint64 {
	n := p.sent()
	return [2]uint64{p.reported(TxPackets, n[TxPackets]), p.reported(TxBytes, n[TxBytes])}
}

// sent returns what Sent does, without faults of counters.
func (p *Port) sent() [2]uint64 {
	pauses := int64(0)
	for i := range p.PFC {
		pauses += p.PFC[i].Sent
	}
	return [2]uint64{uint64(p.TxPkts - pauses), uint64(p.TxData) - uint64(pauses)*uint64(p.w.net.PauseFrameSize())}
}

// Received returns what the port's counters show of packets and bytes that arrived.
func (p *Port) Received(packets, bytes uint64) (shownPackets, shownBytes uint64) {
	if p.miscounts == nil {
		return packets, bytes
	}
	return p.reported(RxPackets, packets), p.reported(RxBytes, bytes)
}

// FlowsetCounts returns how often the flowset of the switch counts the next packet: once,
// unless a fault has it miscount.
func (s *Switch) FlowsetCounts() int {
	n := 1
	for _, m := range s.miscounts {
		m.error += m.more
		if m.error >= 1 {
			n, m.error = n+1, m.error-1
		}
		if m.error <= -1 {
			n, m.error = n-1, m.error+1
		}
	}
	return max(n, 0)
}
