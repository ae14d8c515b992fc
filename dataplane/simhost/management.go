package simhost

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// ManagementConfig is how a management network treats datagrams. It is a network of its
// own: what the fabric does, a deadlock too, does not touch it.
type ManagementConfig struct {
	Delay   time.Duration
	Jitter  time.Duration // up to this much more, all delays alike
	Loss    float64       // probability that a datagram is lost
	Reorder bool          // Jitter may bring datagrams of one switch out of order
	Seed    uint64
}

// DefaultManagementConfig loses nothing and takes 100 to 120 µs, as a few store-and-forward
// hops at 1 Gb/s and a kernel's receive path do.
func DefaultManagementConfig() ManagementConfig {
	return ManagementConfig{Delay: 100 * time.Microsecond, Jitter: 20 * time.Microsecond}
}

// Check returns an error for the first invalid field.
func (m ManagementConfig) Check() error {
	if m.Delay < 0 || m.Jitter < 0 {
		return fmt.Errorf("simhost: management delay %v, jitter %v, want at least 0", m.Delay, m.Jitter)
	}
	if !(m.Loss >= 0 && m.Loss <= 1) {
		return fmt.Errorf("simhost: management loss %v, want 0 to 1", m.Loss)
	}
	return nil
}

// Management is a management network at work, shared by all its switches. Its
// randomness is its own, and each switch's is: reports change nothing of the
// traffic, and the fate of a switch's datagrams depends on no other switch.
//
// The sink is called in the order of arrival, between the simulator's stretches
// owner lookahead: a datagram that is faster than any link arrives as late as the
// stretch's end.
type Management struct {
	net      *sim.Network
	cfg      ManagementConfig
	sink     Sink
	attached map[model.NodeID]*attachment

	inFlight    arrivalHeap
	free        []*sentDatagram
	arrive      func()
	drainOffset engine.Time // owner the run's time, when it is over and the rest is settled
}

// attachment is where a switch is connected.
type attachment struct {
	rng  *rand.Rand
	last engine.Time // arrival of the last datagram
	sent uint64
}

// sentDatagram is a datagram underway.
type sentDatagram struct {
	at       engine.Time
	from     *Switch
	number   uint64
	reports  int
	datagram []byte
}

// NewManagement sets up a management network that ends at a sink. The time it
// tells is the run's: the collector has a perfect clock.
func NewManagement(n *sim.Network, m ManagementConfig, sink Sink) (*Management, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	net := &Management{net: n, cfg: m, sink: sink, attached: map[model.NodeID]*attachment{}}
	net.arrive = net.deliver
	return net, nil
}

// limit is what a standard Ethernet frame leaves for UDP's payload.
func (m *Management) limit() int { return 1500 - 20 - 8 }

func (m *Management) carry(from *Switch, datagram []byte, reports int) {
	e := m.attached[from.sw.ID]
	if e == nil {
		e = &attachment{rng: rand.New(rand.NewPCG(m.cfg.Seed, uint64(from.sw.ID)))}
		m.attached[from.sw.ID] = e
	}
	// Both numbers are drawn every time, so that more loss or less changes
	// nothing of the delays.
	lost := e.rng.Float64() < m.cfg.Loss
	jitter := engine.Time(e.rng.Int64N(int64(engine.Of(m.cfg.Jitter)) + 1))
	e.sent++
	if lost {
		from.loseInFlight(ManagementLoss, reports)
		return
	}
	at := m.net.Now() + m.drainOffset + engine.Of(m.cfg.Delay) + jitter
	if !m.cfg.Reorder {
		at = max(at, e.last)
		e.last = at
	}
	p := m.newDatagram()
	p.at, p.from, p.number, p.reports = at, from, e.sent, reports
	p.datagram = append(p.datagram[:0], datagram...)
	heap.Push(&m.inFlight, p)
	if m.drainOffset == 0 {
		m.net.At(at, m.arrive)
	}
}

// deliver hands over what has arrived. All nodes have got to the present, so
// nothing that arrives earlier is still to come.
func (m *Management) deliver() {
	for len(m.inFlight) > 0 && m.inFlight[0].at <= m.net.Now() {
		m.deliverNext()
	}
}

// deliverNext hands over what arrives next.
func (m *Management) deliverNext() {
	p := heap.Pop(&m.inFlight).(*sentDatagram)
	p.from.arrived(p.reports)
	m.sink(max(p.at, m.net.Now()).Model(), p.from.sw.ID, p.datagram)
	m.free = append(m.free, p)
}

func (m *Management) newDatagram() *sentDatagram {
	k := len(m.free)
	if k == 0 {
		return &sentDatagram{}
	}
	p := m.free[k-1]
	m.free = m.free[:k-1]
	return p
}

// arrivalHeap is a heap by arrival. Ties go by switch and number: the order in
// which the simulator plays its nodes must not show.
type arrivalHeap []*sentDatagram

func (h arrivalHeap) Len() int { return len(h) }

func (h arrivalHeap) Less(i, j int) bool {
	return cmp.Or(
		cmp.Compare(h[i].at, h[j].at),
		cmp.Compare(h[i].from.sw.ID, h[j].from.sw.ID),
		cmp.Compare(h[i].number, h[j].number),
	) < 0
}

func (h arrivalHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *arrivalHeap) Push(x any) { *h = append(*h, x.(*sentDatagram)) }

func (h *arrivalHeap) Pop() any {
	a := *h
	p := a[len(a)-1]
	a[len(a)-1] = nil
	*h = a[:len(a)-1]
	return p
}
