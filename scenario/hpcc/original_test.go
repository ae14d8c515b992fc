package hpcc

import (
	"container/heap"
	"fmt"
	"math/rand/v2"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/engine"
)

// original is a slow and obvious reference implementation of the HPCC
// simulator: one event queue for the whole fabric, ordered by time and then by
// when events were scheduled, a function for every event, a timer for every
// timer. It shares routes, the arithmetic of ns-3's times and the configuration
// with the implementation under test, and nothing else.
type original struct {
	s    *Setup
	c    *sim.Config
	now  int64 // ns
	made uint64
	due  events
	rng  *rand.Rand

	nodes []*tnode
	qps   []*tqp
	pfc   []string // as pfc.txt has it
	drops int
	marks int
	hops  int

	finished       int
	maxWin, maxRTT int64
}

type event struct {
	at   int64
	made uint64
	run  func()
	off  bool
	done bool
}

type events []*event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].made < h[j].made
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(*event)) }
func (h *events) Pop() any {
	a := *h
	e := a[len(a)-1]
	*h = a[:len(a)-1]
	return e
}

func (w *original) after(ns int64, run func()) *event {
	w.made++
	e := &event{at: w.now + ns, made: w.made, run: run}
	heap.Push(&w.due, e)
	return e
}

func (e *event) pending() bool { return e != nil && !e.off && !e.done }

// tnode is a host or a switch, with the switch's books.
type tnode struct {
	id       model.NodeID
	isSwitch bool
	ports    []*tport // port i+1

	room                        int64 // buffer without headroom and reserve
	used                        int64 // of the shared buffer
	ingress, headroom, egressed [][8]int64
	pausing                     [][8]bool
	hdrmLimit                   []int64
	shift                       []uint8
	kmin, kmax                  []int64
	pmax                        []float64
}

type tport struct {
	node   *tnode
	num    int
	peer   *tport
	rate   model.Rate
	delay  int64
	busy   bool
	paused [8]bool

	// Of a switch.
	queues [8][]*tpkt
	rr     int
	sent   int64

	// Of a host.
	acks     []*tpkt
	qps      []*tqp
	last     int
	nextSend *event
}

type tkind int

const (
	tdata tkind = iota
	tack
	tnack
	tpfc
)

type tpkt struct {
	kind      tkind
	size      int64
	pg        int
	key       model.FlowKey
	qp        *tqp
	seq       int64
	payload   int64
	marked    bool
	in        int
	pause     bool
	ts        int64
	hops      []thop
	carriesCE bool
}

func newOriginal(s *Setup) *original {
	w := &original{s: s, c: &s.Sim, rng: rand.New(rand.NewPCG(7, 7))}
	f := s.Fabric
	for i := range f.Nodes() {
		n := f.Node(model.NodeID(i))
		t := &tnode{id: n.ID, isSwitch: n.Role.IsSwitch()}
		k := len(n.Ports)
		t.ingress, t.headroom, t.egressed, t.pausing = make([][8]int64, k), make([][8]int64, k), make([][8]int64, k), make([][8]bool, k)
		t.room = int64(s.Sim.Buffer)
		for j, p := range n.Ports {
			t.ports = append(t.ports, &tport{node: t, num: j + 1, rate: p.Rate, delay: p.Delay.Nanoseconds()})
			h := int64(p.Rate) * p.Delay.Nanoseconds() / 8 / 1e9 * 3
			t.hdrmLimit = append(t.hdrmLimit, h)
			t.room -= h + 4096
			shift, rate := uint8(3), p.Rate
			for nic := f.Node(f.Hosts()[0]).Ports[0].Rate; rate > nic && shift > 0; rate /= 2 {
				shift--
			}
			t.shift = append(t.shift, shift)
			e := sim.ECNParams{Kmin: 1 << 60, Kmax: 1 << 60}
			for _, x := range s.Sim.ECN {
				if x.Rate == p.Rate {
					e = x
				}
			}
			t.kmin, t.kmax, t.pmax = append(t.kmin, int64(e.Kmin)), append(t.kmax, int64(e.Kmax)), append(t.pmax, e.Pmax)
		}
		w.nodes = append(w.nodes, t)
	}
	for i := range f.Nodes() {
		for j, p := range f.Node(model.NodeID(i)).Ports {
			w.nodes[i].ports[j].peer = w.nodes[p.Peer.Node].ports[p.Peer.Port-1]
		}
	}
	for i := range s.Flows {
		i := i
		w.after(int64(s.Flows[i].Start), func() { w.begin(i) })
	}
	return w
}

// run runs until all flows have finished or time is up.
func (w *original) run() {
	for len(w.due) > 0 && w.finished < len(w.s.Flows) {
		e := heap.Pop(&w.due).(*event)
		if e.off {
			continue
		}
		if w.now = e.at; w.now > int64(w.s.Stop) {
			return
		}
		e.done = true
		e.run()
	}
}

func txns(size int64, rate model.Rate) int64 {
	return int64(engine.TransmitNS3(size, rate) / engine.Nanosecond)
}

// Sending, for hosts and switches.

func (w *original) kick(p *tport) {
	if p.busy {
		return
	}
	var pkt *tpkt
	if p.node.isSwitch {
		pkt = w.fromQueues(p)
	} else {
		pkt = w.fromNIC(p)
	}
	if pkt != nil {
		w.put(p, pkt)
	}
}

func (w *original) put(p *tport, pkt *tpkt) {
	p.busy = true
	if pkt.kind != tpfc {
		w.hops++
	}
	tx := txns(pkt.size, p.rate)
	w.after(tx, func() {
		p.busy = false
		w.kick(p)
	})
	w.after(tx+p.delay, func() { w.arrive(p.peer, pkt) })
	if pkt.kind == tdata && !p.node.isSwitch {
		pkt.qp.paced(w, pkt.size)
	}
}

func (w *original) arrive(p *tport, pkt *tpkt) {
	switch {
	case pkt.kind == tpfc:
		kind, ev := 0, 0
		if p.node.isSwitch {
			kind = 1
		}
		if pkt.pause {
			ev = 1
		}
		w.pfc = append(w.pfc, fmt.Sprintf("%d %d %d %d %d", w.now, p.node.id, kind, p.num, ev))
		p.paused[pkt.pg] = pkt.pause
		if !pkt.pause {
			w.kick(p)
		}
	case p.node.isSwitch:
		w.forward(p, pkt)
	default:
		w.receive(p, pkt)
	}
}

// Switches.

func (n *tnode) xoff(port int) int64 { return (n.room - n.used) >> n.shift[port-1] }

func (n *tnode) shared(port, q int) int64 { return max(0, n.ingress[port-1][q]-4096) }

func (w *original) forward(in *tport, pkt *tpkt) {
	n := in.node
	port, ok := w.s.Routes.NextHop(n.id, pkt.key)
	if !ok || port == 0 {
		w.drops++
		return
	}
	out := n.ports[port-1]
	i, q := in.num-1, pkt.pg
	pkt.in = in.num
	if q != 0 {
		x := n.xoff(in.num)
		if pkt.size+n.headroom[i][q] > n.hdrmLimit[i] && pkt.size+n.shared(in.num, q) > x {
			w.drops++
			return
		}
		switch grown := n.ingress[i][q] + pkt.size; {
		case grown <= 4096:
			n.ingress[i][q] = grown
		case grown-4096 > x:
			n.headroom[i][q] += pkt.size
		default:
			n.ingress[i][q] = grown
			n.used += min(pkt.size, grown-4096)
		}
		n.egressed[out.num-1][q] += pkt.size
		if !n.pausing[i][q] && (n.headroom[i][q] > 0 || n.shared(in.num, q) >= n.xoff(in.num)) {
			w.sendPFC(in, q, true)
			n.pausing[i][q] = true
		}
	}
	out.queues[q] = append(out.queues[q], pkt)
	w.kick(out)
}

func (w *original) sendPFC(p *tport, q int, pause bool) {
	p.queues[0] = append(p.queues[0], &tpkt{kind: tpfc, size: 43, pg: q, pause: pause})
	w.kick(p)
}

func (w *original) fromQueues(p *tport) *tpkt {
	q := -1
	if len(p.queues[0]) > 0 {
		q = 0
	} else {
		for i := 1; i <= 8; i++ {
			if k := (p.rr + i) % 8; !p.paused[k] && len(p.queues[k]) > 0 {
				q = k
				break
			}
		}
	}
	if q < 0 {
		return nil
	}
	pkt := p.queues[q][0]
	p.queues[q] = p.queues[q][1:]
	if q != 0 {
		p.rr = q
	}
	w.left(p, q, pkt)
	return pkt
}

func (w *original) left(p *tport, q int, pkt *tpkt) {
	n, o := p.node, p.num-1
	if q != 0 {
		i := pkt.in - 1
		fromHeadroom := min(n.headroom[i][q], pkt.size)
		fromShared := min(pkt.size-fromHeadroom, n.shared(pkt.in, q))
		n.headroom[i][q] -= fromHeadroom
		n.ingress[i][q] -= pkt.size - fromHeadroom
		n.used -= fromShared
		n.egressed[o][q] -= pkt.size
		depth := n.egressed[o][q]
		if depth > n.kmax[o] || depth > n.kmin[o] && w.rng.Float64() < n.pmax[o]*float64(depth-n.kmin[o])/float64(n.kmax[o]-n.kmin[o]) {
			pkt.marked = true
			if pkt.kind == tdata {
				w.marks++
			}
		}
		if s := n.shared(pkt.in, q); n.pausing[i][q] && n.headroom[i][q] == 0 && (s == 0 || s+3072 <= n.xoff(pkt.in)) {
			w.sendPFC(n.ports[i], q, false)
			n.pausing[i][q] = false
		}
	}
	if pkt.kind == tdata && congestion.TraitsOf(w.c.Congestion).INTMulti > 0 {
		queued := int64(0)
		for _, l := range p.queues {
			for _, x := range l {
				queued += x.size
			}
		}
		pkt.hops = append(pkt.hops, thop{w.now & (1<<24 - 1), p.sent / 128 & (1<<20 - 1), queued / 80 & (1<<17 - 1), p.rate})
	}
	p.sent += pkt.size
}
