package attribution

import "math"

// visit is the packet's stay in one queue of its path.
type visit struct {
	hop    int    // position in Path, then Reverse
	queue  *queue // nil: no record describes it
	joins  float64
	wait   float64
	bounds waitBounds
	held   bool // the packet was still there in the end
}

// known reports whether the queue's device reported.
func (v *visit) known() bool { return v.queue != nil && v.queue.reported }

// walkChoice selects one of the walks that the evidence allows.
type walkChoice struct {
	position float64 // of each wait between its bounds, as in waitBounds.between
	gap      float64 // the wait at the first queue that was not reported
	start    float64 // when the packet joins the first queue, after Victim.Sent
}

// walk follows the packet through the queues of its path in time. It returns
// the sum of the waits and of the times on the wire.
func (e *engine) walk(c walkChoice) (visits []visit, waits, wire float64) {
	v := e.victim
	end := float64(v.Took)
	visits = e.visits[:0]
	at := c.start
	gap := c.gap
	for hop := range len(v.Path) + len(v.Reverse) {
		index, size := e.hop(hop)
		s := visit{hop: hop, joins: at}
		if index >= 0 {
			s.queue = e.queue(index)
		}
		if s.known() {
			s.bounds = s.queue.waitOf(at, s.queue.clockError+e.clockError)
			s.wait = s.bounds.between(c.position)
		} else {
			s.wait, gap = gap, 0
		}
		held := v.InFlight && e.holds(&s, end)
		if held {
			s.wait, s.held = max(0, end-at), true
		}
		waits += s.wait
		visits = append(visits, s)
		if held {
			break
		}
		at += s.wait
		if s.queue != nil {
			onWire := size/s.queue.rate + s.queue.delay
			at, wire = at+onWire, wire+onWire
		}
	}
	e.visits = visits
	return visits, waits, wire
}

// holds reports whether a queue holds the packet in flight at an instant, after
// it has joined.
func (e *engine) holds(s *visit, at float64) bool {
	left := at - s.joins
	switch last := e.victim.QueuedAt; {
	case s.known() && s.bounds.least >= left:
		return true
	case last < 0:
		return s.wait >= left
	case s.hop == last && !e.trustQueuedAt && s.known() && s.queue.onCurve(s.joins):
		return s.bounds.most >= left // else it has left, and others of its flow have come
	}
	return s.hop == e.victim.QueuedAt
}

// hop returns the queue at a position of the path and the size of what passes
// it.
func (e *engine) hop(hop int) (index int, size float64) {
	v := e.victim
	if hop < len(v.Path) {
		index, size = v.Path[hop], e.dataSize
	} else {
		index, size = v.Reverse[hop-len(v.Path)], e.ackSize
	}
	if index < 0 || index >= len(e.queues) {
		index = -1
	}
	return index, size
}

// The search for a walk tries gridSteps choices and halves the distance between
// two of them bisections times: to far below a nanosecond of any lateness.
const (
	gridSteps  = 16
	bisections = 48
)

// roundingError is less than a nanosecond: what sums of waits differ by because
// they are added up in another order.
const roundingError = 0.5

// residence returns the walk whose waits sum to the lateness, or come nearest
// to it, and the lateness. Waits that exceed it together are scaled down.
func (e *engine) residence() (visits []visit, late float64) {
	visits, waits, wire := e.walk(walkChoice{})
	v := e.victim
	late = float64(v.Took - v.Base)
	if v.InFlight {
		if waits+wire < float64(v.Took-v.Base) && v.QueuedAt >= 0 && !e.hasGap() {
			// The curves let it pass all queues long ago, and yet it is missing: they are
			// too coarse, and it is where its flow was seen.
			e.trustQueuedAt = true
			visits, waits, wire = e.walk(walkChoice{})
		}
		if n := len(visits); n == 0 || !visits[n-1].held {
			// It has passed all known queues: the rest of its time it is on the wire,
			// or its acknowledgement is, as far as they need it.
			wire = max(wire, min(float64(v.Base), float64(v.Took)-waits))
		}
		late = float64(v.Took) - wire
	}
	if late <= 0 {
		return nil, 0
	}
	choose := func(x float64) walkChoice { return walkChoice{position: x} }
	switch {
	case math.Abs(waits-late) < roundingError:
		// As of a packet that is still in a queue: its wait there is the rest.
	case waits > late:
		choose = func(x float64) walkChoice { return walkChoice{position: -x} }
		e.settle(choose, func(waits float64) bool { return waits <= late })
	case waits < late && e.hasGap():
		e.settleGap(late)
	case waits < late:
		e.settle(choose, func(waits float64) bool { return waits >= late })
	}
	waits = 0
	for i := range e.visits {
		waits += e.visits[i].wait
	}
	if waits > late {
		for i := range e.visits {
			e.visits[i].wait *= late / waits
		}
	}
	return e.visits, late
}

// hasGap reports whether a queue of the path was not reported.
func (e *engine) hasGap() bool {
	for i := range e.visits {
		if !e.visits[i].known() {
			return true
		}
	}
	return false
}

// settleGap walks with the wait at the queue that was not reported that lets the
// others explain most of the lateness; of equal ones the shortest.
func (e *engine) settleGap(late float64) {
	best, most := 0.0, math.Inf(-1)
	for i := 0; i <= 2*gridSteps; i++ {
		gap := late * float64(i) / (2 * gridSteps)
		_, waits, _ := e.walk(walkChoice{gap: gap})
		if explained := min(waits-gap, late-gap); explained > most {
			best, most = gap, explained
		}
	}
	e.walk(walkChoice{gap: best})
}

// settle walks by the first choice, from 0 to 1, whose sum of waits is enough.
// If none is, it walks by the choice with the greatest sum.
func (e *engine) settle(choose func(float64) walkChoice, enough func(waits float64) bool) {
	best, most, low := 0.0, math.Inf(-1), 0.0
	for i := 0; i <= gridSteps; i++ {
		x := float64(i) / gridSteps
		_, waits, _ := e.walk(choose(x))
		if enough(waits) {
			high := x
			for range bisections {
				mid := (low + high) / 2
				if _, waits, _ := e.walk(choose(mid)); enough(waits) {
					high = mid
				} else {
					low = mid
				}
			}
			best = high
			break
		}
		if waits > most {
			best, most = x, waits
		}
		low = x
	}
	e.walk(choose(best))
}
