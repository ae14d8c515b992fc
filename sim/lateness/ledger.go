package lateness

import (
	"container/heap"
	"math/bits"
	"slices"

	"github.com/weft-telemetry/weft/sim/engine"
)

// ledger follows the lateness of one packet back to its roots. Time is booked
// in units of a fraction of a picosecond, as integers: none is lost in any
// split.
//
// Nodes are chains of paused queues, each paused because of the next. What is
// owed to a pause is spread over its pieces; these are settled from the latest
// to the earliest, each when all that is owed to it is known, because a piece
// owes only to earlier ones.
type ledger struct {
	oracle       *Oracle
	now, horizon engine.Time
	generation   int64
	shift        uint // units of a picosecond, as a power of two

	nodes   []*node
	roots   map[*queue]*node
	open    pauseHeap
	cut     map[pauseID]*pieces
	edges   map[[2]pauseID]bool
	looped  bool                // a chain returned to one of its queues
	group   map[pauseID]int     // strongly connected pauses; nil until known
	cycles  []*cycle            // deadlock cycles
	cycleOf map[string]*cycle   // by their queues
	stopped map[cycleEntry]*due // lateness that ended in a cycle
	entries []*due
}

// node is a queue that lateness is owed to, at the end of a chain of paused
// queues.
type node struct {
	queue    *queue
	parent   *node
	children map[*queue]*node
	cycle    *cycle // set where this follows back how a deadlock began

	paused map[int]*owed // by pause, where the peer is a switch

	// Roots, in units.
	host, unexplained uint64
	contention        contention
}

// owed is what is owed to one pause.
type owed struct {
	node    *node
	pause   int
	pieces  *pieces
	next    int // the latest piece that is not settled
	density uint64
	points  []uint64 // by piece
	change  []int64  // of the density from this piece on to earlier ones
}

func (w *owed) at() engine.Time { return w.pieces.start[w.next] }

// pauseHeap has the latest piece first; ties are in order of creation.
type pauseHeap struct {
	list []*owed
	seq  map[*owed]int
}

func (h *pauseHeap) Len() int { return len(h.list) }

func (h *pauseHeap) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	if a.at() != b.at() {
		return a.at() > b.at()
	}
	return h.seq[a] < h.seq[b]
}

func (h *pauseHeap) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }

func (h *pauseHeap) Push(x any) { h.list = append(h.list, x.(*owed)) }

func (h *pauseHeap) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}

// share returns m × a / b, rounded down; a must not exceed b.
func share(m uint64, a, b int64) uint64 {
	hi, lo := bits.Mul64(m, uint64(a))
	q, _ := bits.Div64(hi, lo, uint64(b))
	return q
}

func newLedger(o *Oracle, now, late engine.Time) *ledger {
	l := &ledger{
		oracle: o, now: now, horizon: max(0, o.horizon(o.net.Now())), generation: o.generation,
		shift: uint(min(24, 62-bits.Len64(uint64(late)))),
		roots: map[*queue]*node{}, open: pauseHeap{seq: map[*owed]int{}}, cut: map[pauseID]*pieces{},
		edges: map[[2]pauseID]bool{}, cycleOf: map[string]*cycle{}, stopped: map[cycleEntry]*due{},
	}
	return l
}

// units converts a time.
func (l *ledger) units(t engine.Time) uint64 { return uint64(t) << l.shift }

// root returns the node of a queue in which the packet itself waited.
func (l *ledger) root(q *queue) *node {
	if l.roots[q] == nil {
		l.roots[q] = l.newNode(nil, q, nil)
	}
	return l.roots[q]
}

func (l *ledger) newNode(parent *node, q *queue, c *cycle) *node {
	n := &node{queue: q, parent: parent, cycle: c, children: map[*queue]*node{}, paused: map[int]*owed{}}
	q.extend(l.generation)
	l.nodes = append(l.nodes, n)
	return n
}

// child returns the node of a queue behind n. A chain that returns to one of
// its queues goes on from there.
func (l *ledger) child(n *node, q *queue) *node {
	if back := n.find(q); back != nil {
		return back
	}
	if n.children[q] == nil {
		n.children[q] = l.newNode(n, q, n.cycle)
	}
	return n.children[q]
}

// find returns the node of a queue on the chain to n, or nil.
func (n *node) find(q *queue) *node {
	for ; n != nil; n = n.parent {
		if n.queue == q {
			return n
		}
	}
	return nil
}

// settle settles all pieces.
func (l *ledger) settle() {
	for l.open.Len() > 0 {
		w := heap.Pop(&l.open).(*owed)
		i := w.next
		w.density = uint64(int64(w.density) + w.change[i])
		amount := w.points[i] + w.density*uint64(w.pieces.endOf(i)-w.pieces.start[i])
		if w.next--; w.next >= 0 {
			heap.Push(&l.open, w)
		}
		if amount > 0 {
			l.pass(w, i, amount)
		}
	}
}

// pass passes on what is owed to a piece of a pause to what the peer held.
func (l *ledger) pass(w *owed, i int, amount uint64) {
	causes := l.causes(w.node.queue, w.pieces, i)
	if causes == nil {
		w.node.unexplained += amount
		return
	}
	total, sum := int64(0), int64(0)
	for c := range causes {
		total += causes[c].bytes
	}
	from := pauseID{w.node.queue.id, int32(w.pause)}
	given := uint64(0)
	for c := range causes {
		sum += causes[c].bytes
		upTo := share(amount, sum, total)
		l.explain(w.node, from, &causes[c], upTo-given, w.pieces.start[i])
		given = upTo
	}
}

// explain owes an amount to a queue that was part of the cause of a pause.
func (l *ledger) explain(n *node, from pauseID, c *cause, amount uint64, before engine.Time) {
	b := &c.backlog
	child := l.child(n, c.queue)
	excess := b.high - b.low // owed to pauses
	if b.all <= 0 || excess <= 0 {
		child.contention.add(c, amount)
		return
	}
	paused := share(amount, int64(min(excess, b.all)), int64(b.all))
	child.contention.add(c, amount-paused)
	l.owe(child, n, &from, paused, b.low, b.high, before)
}

// owe owes an amount to a range of a queue's paused time. The range is before
// an instant; parent and from say which pause it explains, if any.
func (l *ledger) owe(n, parent *node, from *pauseID, amount uint64, low, high, before engine.Time) {
	if amount == 0 {
		return
	}
	q := n.queue
	if begin := q.pauses.paused(l.horizon); low < begin {
		cut := share(amount, int64(min(begin, high)-low), int64(high-low))
		n.unexplained += cut
		if amount, low = amount-cut, begin; low >= high {
			return
		}
	}
	if q.port.port.Peer().Host() != nil {
		n.host += amount
		return
	}
	given := uint64(0)
	for k := q.pauses.find(low); k < q.pauses.base+len(q.pauses.list); k++ {
		p := q.pauses.at(k)
		a := max(low, p.before)
		b := min(high, p.before+min(p.end, l.now)-p.begin)
		if p.before >= high {
			break
		}
		upTo := share(amount, int64(b-low), int64(high-low))
		l.oweTo(n, parent, from, k, upTo-given, p.begin+a-p.before, p.begin+b-p.before, before)
		given = upTo
	}
}

// oweTo owes an amount to the part [a, b) of one pause.
func (l *ledger) oweTo(n, parent *node, from *pauseID, k int, amount uint64, a, b, before engine.Time) {
	if amount == 0 {
		return
	}
	if from != nil {
		to := pauseID{n.queue.id, int32(k)}
		l.edges[[2]pauseID{*from, to}] = true
		if back := parent.find(n.queue); back != nil {
			l.looped = true
			if g, ok := l.group[to]; ok && n.cycle == nil && g == l.group[*from] {
				n = l.stop(back, parent, amount)
			}
		}
	}
	w := n.paused[k]
	if w == nil {
		p := l.pieces(n.queue, k)
		w = &owed{node: n, pause: k, pieces: p, points: make([]uint64, len(p.start)), change: make([]int64, len(p.start))}
		w.next, _ = slices.BinarySearch(p.start, before)
		w.next--
		n.paused[k] = w
		l.open.seq[w] = len(l.open.seq)
		heap.Push(&l.open, w)
	}
	w.add(amount, a, b)
}

// add spreads an amount over [a, b).
func (w *owed) add(amount uint64, a, b engine.Time) {
	i, j := w.pieces.find(a), w.pieces.find(b-1)
	if j > w.next {
		panic("lateness: owed to a piece that is settled")
	}
	density := amount / uint64(b-a)
	w.points[j] += amount - density*uint64(b-a)
	if i == j {
		w.points[i] += density * uint64(b-a)
		return
	}
	w.points[i] += density * uint64(w.pieces.endOf(i)-a)
	w.points[j] += density * uint64(b-w.pieces.start[j])
	w.change[j-1] += int64(density)
	w.change[i] -= int64(density)
}
