package attribution

import (
	"math"
	"slices"
	"sort"

	"github.com/weft-telemetry/weft/model"
)

// engine computes one account.
type engine struct {
	evidence   *Evidence
	victim     *Victim
	clockError float64 // of the victim's host
	dataSize   float64
	ackSize    float64

	queues []*queue // by index; nil: not asked for yet
	visits []visit
	// trustQueuedAt: the packet in flight is at Victim.QueuedAt whatever its curve says.
	trustQueuedAt bool

	states     []state
	stateIndex map[stateKey]int32
	ahead      candidates
	roots      []root
	rootIndex  map[rootKey]int32
	cycles     []cycle
	statesOf   [][]int32 // by pause that was reached
	components []component

	sum     shareSum
	scratch []holder
	parts   []pausePart
	cuts    []float64
	chain   []int // queues from the one whose slices are cut on
}

// Attribute accounts for the lateness of a packet. It keeps no reference to its
// arguments.
func Attribute(ev *Evidence, v *Victim) *Account {
	e := newEngine(ev, v)
	visits, late := e.residence()
	starts := e.starts(visits)
	e.follow(late)
	e.solve()
	if len(e.cycles) > 0 {
		e.reachTriggers(late)
		e.follow(late)
		e.solve()
	}
	return e.account(visits, starts, late)
}

func newEngine(ev *Evidence, v *Victim) *engine {
	e := &engine{
		evidence: ev, victim: v, clockError: float64(v.ClockError),
		dataSize: float64(ev.MTU), ackSize: float64(v.AckSize),
		queues:     make([]*queue, len(ev.Queues)),
		stateIndex: map[stateKey]int32{}, rootIndex: map[rootKey]int32{},
	}
	if v.Size > 0 {
		e.dataSize = float64(v.Size)
	}
	return e
}

// ns returns a time in nanoseconds since the packet was sent.
func (e *engine) ns(t model.Time) float64 { return float64(t.Sub(e.victim.Sent)) }

// device returns the index of a node's device, or -1.
func (e *engine) device(n model.NodeID) int {
	list := e.evidence.Devices
	i := sort.Search(len(list), func(i int) bool { return list[i].Node >= n })
	if i < len(list) && list[i].Node == n {
		return i
	}
	return -1
}

// queue returns a queue, prepared.
func (e *engine) queue(index int) *queue {
	if e.queues[index] != nil {
		return e.queues[index]
	}
	if e.evidence.Load != nil {
		e.evidence.Load(index)
	}
	r := &e.evidence.Queues[index]
	q := &queue{
		QueueRecord: r, index: index, device: e.device(r.Queue.Port.Node), peer: e.device(r.Peer.Node),
		rate: max(float64(r.Rate), 1) / 8e9, delay: max(float64(r.Delay), 0), since: math.Inf(-1),
		threshold: float64(max(r.Threshold, e.evidence.MTU, 1)),
	}
	e.queues[index] = q
	q.feeds = slices.DeleteFunc(slices.Clone(r.Feeds), func(f Feed) bool {
		return f.To < 0 || f.To >= len(e.evidence.Queues) || e.evidence.Queues[f.To].Queue.Port.Node != r.Peer.Node
	})
	if r.Since != 0 {
		q.since = e.ns(r.Since)
	}
	if q.device < 0 || !e.evidence.Devices[q.device].Reported {
		return q
	}
	d := &e.evidence.Devices[q.device]
	q.reported, q.clockError = true, float64(d.ClockError)
	q.snapshot = e.ns(d.Snapshot)
	q.pauses = make([]pause, 0, len(r.Pauses))
	last := math.Inf(-1)
	for _, p := range r.Pauses {
		n := pause{max(e.ns(p.From), last), e.ns(p.To), p.Open, max(float64(p.Bytes), 0), coverage(p.Coverage)}
		if p.Open {
			n.to = openUntil(n.from, q.snapshot, float64(e.victim.Took))
		}
		if n.to > n.from {
			q.pauses, last = append(q.pauses, n), n.to
		}
	}
	last = math.Inf(-1)
	q.congestions = make([]congestion, 0, len(r.Congestions))
	for _, c := range r.Congestions {
		n := congestion{max(e.ns(c.From), last), e.ns(c.To), c.Open, max(float64(c.Peak), 0), coverage(c.Coverage)}
		if c.Open {
			n.to = openUntil(n.from, q.snapshot, float64(e.victim.Took))
		}
		if n.to > n.from {
			q.congestions, last = append(q.congestions, n), n.to
		}
	}
	q.slices = make([][]float64, len(q.pauses))
	var depths []known
	for _, d := range r.Depths {
		depths = append(depths, known{e.ns(d.At), max(float64(d.Bytes), 0)})
	}
	q.curve, q.curveError = e.curve(r.Curve), float64(r.CurveError)
	q.buildBacklog(depths)
	return q
}

// curve returns the points of a curve, ascending.
func (e *engine) curve(list []Depth) (points []known) {
	last := math.Inf(-1)
	for _, d := range list {
		last = max(last, e.ns(d.At))
		points = append(points, known{last, max(float64(d.Bytes), 0)})
	}
	return points
}

// coverage returns a coverage from 0 to 1; not given: 1.
func coverage(c float64) float64 {
	if c > 0 && c < 1 {
		return c
	}
	return 1
}

// start is a part of the lateness and what it is due to first: a slice of a
// pause, or a root.
type start struct {
	edge
	hop     int
	time    float64
	certain float64 // of time: whatever the clocks' errors
	behind  float64 // of time: behind what a pause left
}

// starts returns the parts of the waits of all visits.
func (e *engine) starts(visits []visit) (list []start) {
	for i := range visits {
		v := &visits[i]
		if v.wait <= 0 {
			continue
		}
		if !v.known() {
			index, _ := e.hop(v.hop)
			r := e.addRoot(rootKey{queue: int32(index), kind: Unexplained, reason: NoReport}, v.joins)
			list = append(list, start{edge{-1, r, 1, true}, v.hop, v.wait, 0, 0})
			continue
		}
		list = e.appendStarts(list, v)
	}
	return list
}

func (e *engine) appendStarts(list []start, v *visit) []start {
	q := v.queue
	var w waitSplit
	if v.held && v.wait < v.bounds.estimate {
		w = q.split(v.joins, v.joins+v.wait, v.joins+v.wait, false, nil)
	} else {
		w = q.splitWait(v.joins, v.wait, v.bounds)
	}
	clocks := q.clockError + e.clockError
	if w.contention > 0 {
		r := e.contentionRoot(q, w.busy, v.joins)
		list = append(list, start{edge{-1, r, 1, true}, v.hop, w.contention, min(w.contention, q.certainBacklog(v.joins, clocks)/q.rate), 0})
	}
	for _, part := range w.pauses {
		certain := 0.0
		if q.certainlyMet(part.pause, v.joins, clocks) {
			certain = max(0, 1-clocks/part.time)
		}
		e.eachSlice(q, part, func(state int32, share float64) {
			s := start{edge{state, -1, share, true}, v.hop, part.time * share, part.time * share * certain, part.behind * share}
			if state < 0 {
				s.root = e.addRoot(rootKey{queue: int32(q.index), kind: Unexplained, reason: NotFollowed}, v.joins)
			}
			e.reached(state, s.time)
			list = append(list, s)
		})
	}
	if w.rest > 0 {
		reason := NoBacklog
		if v.joins > q.snapshot {
			reason = TooLate
		}
		r := e.addRoot(rootKey{queue: int32(q.index), kind: Unexplained, reason: reason}, v.joins)
		list = append(list, start{edge{-1, r, 1, true}, v.hop, w.rest, 0, 0})
	}
	return slices.Clip(list)
}

// contentionRoot returns the root of a contention since a time. A queue whose report
// is incomplete, and has no pauses, may have had some.
func (e *engine) contentionRoot(q *queue, since, at float64) int32 {
	if len(q.pauses) == 0 && !e.evidence.Devices[q.device].Complete {
		return e.addRoot(rootKey{queue: int32(q.index), kind: Unexplained, reason: NoReport}, at)
	}
	return e.addRoot(rootKey{queue: int32(q.index), kind: Contention, since: since}, at)
}

// certainlyMet reports whether a packet that joins at an instant waits for a
// pause whatever the clocks' errors. One that comes just before a pause, and
// finds nothing ahead, is gone when it begins.
func (q *queue) certainlyMet(index int, at, clocks float64) bool {
	p := &q.pauses[index]
	switch {
	case p.to <= at:
		return true
	case p.from > at:
		return q.certainBacklog(at, clocks) > q.rate*(p.from-at+clocks)
	}
	return within(at, p.from, p.to, clocks) == Yes
}

// certainBacklog returns the bytes that a packet certainly found, without what a
// pause made: the threshold of a congestion, or what a pause found, less what
// the link could have sent since.
func (q *queue) certainBacklog(at, clocks float64) float64 {
	if i := q.congestionAt(at); i >= 0 {
		if c := &q.congestions[i]; c.coverage == 1 && within(at, c.from, c.to, clocks) == Yes {
			return q.threshold
		}
	}
	if i := q.pauseAt(at); i >= 0 && within(at, q.pauses[i].from, q.pauses[i].to, clocks) == Yes {
		return max(0, q.pauses[i].bytes-q.rate*(at-q.pauses[i].from+clocks))
	}
	return 0
}
