package sim

import "github.com/weft-telemetry/weft/sim/engine"

// timer is an event that is not a packet's arrival or departure.
type timer struct {
	at   engine.Time
	seq  uint64 // orders equal times
	kind timerKind
	prio uint8
	gen  uint16 // the timer is void if its object has another generation
	obj  int32
	run  func()
}

type timerKind uint8

const (
	startFlow    timerKind = iota // flow obj starts
	flowTimeout                   // flow obj's retransmission
	computed                      // flow obj, a computation, ends
	pauseExpires                  // on port obj, of priority prio
	pauseRepeats                  // on port obj, of priority prio
	runFunc                       // run
)

// addTimer schedules t for the node. At equal times flows start first, by id:
// other nodes schedule those too, and the order in which nodes run must not
// matter. The other timers are the node's own, in the order they were added.
func (nd *node) addTimer(t timer) {
	t.seq = uint64(t.obj)
	if t.kind != startFlow {
		nd.timerSeq++
		t.seq = 1<<32 + nd.timerSeq
	}
	nd.timers.push(t)
	nd.timerAt = nd.timers[0].at
	nd.w.wake(nd, t.at)
}

// popTimer removes the first timer.
func (nd *node) popTimer() timer {
	t := nd.timers.pop()
	nd.timerAt = engine.Forever
	if len(nd.timers) > 0 {
		nd.timerAt = nd.timers[0].at
	}
	return t
}

// fire runs a timer.
func (nd *node) fire(t timer) {
	n := nd.w.net
	switch t.kind {
	case startFlow:
		nd.startFlow(n.flows[t.obj])
	case flowTimeout:
		n.flowTimer(t.obj, t.gen)
	case computed:
		n.flows[t.obj].endComputation()
	case pauseExpires:
		n.ports[t.obj].expirePause(t.prio, t.gen)
	case pauseRepeats:
		n.ports[t.obj].repeatPause(t.prio, t.gen)
	case runFunc:
		t.run()
	}
}

// timerHeap is a binary heap by (at, seq).
type timerHeap []timer

func (h timerHeap) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h *timerHeap) push(t timer) {
	*h = append(*h, t)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.less(i, up) {
			return
		}
		a[i], a[up] = a[up], a[i]
		i = up
	}
}

func (h *timerHeap) pop() timer {
	a := *h
	top := a[0]
	last := len(a) - 1
	a[0], a[last] = a[last], timer{}
	a = a[:last]
	*h = a
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(a) {
			return top
		}
		if c+1 < len(a) && a.less(c+1, c) {
			c++
		}
		if !a.less(c, i) {
			return top
		}
		a[i], a[c] = a[c], a[i]
		i = c
	}
}
