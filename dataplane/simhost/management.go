package simhost

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// ManagementConfig is the delay and loss of a management network. It is
// separate from the fabric: congestion or a deadlock there does not affect it.
type ManagementConfig struct {
	Delay   time.Duration
	Jitter  time.Duration // uniform, in addition to Delay
	Loss    float64       // probability that a datagram is lost
	Reorder bool          // Jitter may reorder datagrams of one switch
	Seed    uint64
}

// DefaultManagementConfig loses nothing and takes 100 to 120 µs, as a few
// store-and-forward hops at 1 Gb/s and a kernel's receive path do.
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

// Management is a management network, shared by all its switches. It has its
// own random numbers, separate for each switch: reports change nothing of the
// traffic, and the fate of a switch's datagrams depends on no other switch.
//
// The sink is called in the order of arrival, between the simulator's lookahead
// windows: a datagram that is faster than any link arrives at the end of the
// window.
type Management struct {
	net      *sim.Network
	cfg      ManagementConfig
	sink     Sink
	attached map[model.NodeID]*attachment

	// mu guards the fields below and attached: switches may run on several cores.
	// Datagrams have a total order, so it does not matter which is carried first.
	mu          sync.Mutex
	inFlight    arrivalHeap
	free        []*sentDatagram
	arrive      func()
	drainOffset engine.Time // added to the run's time by Drain
}

// attachment is a switch's connection to the network.
type attachment struct {
	rng  *rand.Rand
	last engine.Time // arrival of the last datagram
	sent uint64
}

// sentDatagram is a datagram in flight.
type sentDatagram struct {
	at       engine.Time
	from     *Switch
	number   uint64
	reports  int
	datagram []byte
}

// NewManagement returns a management network that delivers to a sink. Its times
// are the run's: the collector has a perfect clock.
func NewManagement(n *sim.Network, m ManagementConfig, sink Sink) (*Management, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	net := &Management{net: n, cfg: m, sink: sink, attached: map[model.NodeID]*attachment{}}
	net.arrive = net.deliver
	return net, nil
}

// limit returns the UDP payload of a standard Ethernet frame.
func (m *Management) limit() int { return 1500 - 20 - 8 }

func (m *Management) carry(from *Switch, datagram []byte, reports int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.attached[from.sw.ID]
	if e == nil {
		e = &attachment{rng: rand.New(rand.NewPCG(m.cfg.Seed, uint64(from.sw.ID)))}
		m.attached[from.sw.ID] = e
	}
	// Both numbers are drawn every time, so that the loss rate does not change
	// the delays.
	lost := e.rng.Float64() < m.cfg.Loss
	jitter := engine.Time(e.rng.Int64N(int64(engine.Of(m.cfg.Jitter)) + 1))
	e.sent++
	if lost {
		from.loseInFlight(ManagementLoss, reports)
		return
	}
	at := from.sw.Now() + m.drainOffset + engine.Of(m.cfg.Delay) + jitter
	if !m.cfg.Reorder {
		at = max(at, e.last)
		e.last = at
	}
	p := m.newDatagram()
	p.at, p.from, p.number, p.reports = at, from, e.sent, reports
	p.datagram = append(p.datagram[:0], datagram...)
	heap.Push(&m.inFlight, p)
	if m.drainOffset == 0 {
		from.sw.At(at, m.arrive)
	}
}

// deliver delivers the datagrams that have arrived. All nodes have reached the
// current time, so no earlier arrival is still to come.
func (m *Management) deliver() {
	for len(m.inFlight) > 0 && m.inFlight[0].at <= m.net.Now() {
		m.deliverNext()
	}
}

// deliverNext delivers the next datagram.
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

// arrivalHeap orders datagrams by arrival. Ties are broken by switch and
// number: the order in which the simulator runs its nodes must have no effect.
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
