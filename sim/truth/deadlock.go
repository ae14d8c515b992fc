package truth

import (
	"slices"

	"github.com/weft-telemetry/weft/sim/engine"
)

// Deadlock is a loop of paused queues that wait for each other and sent nothing
// for as long as Options.Deadlock says. Pausing that goes round a loop and
// dissolves is none.
type Deadlock struct {
	Cycle []Node // queues in the order they wait for each other, as first found

	// Formed is when the last of the loop's queues was paused or sent for the
	// last time; Found is when the watch looked and saw it.
	Formed, Found engine.Time

	// Ended is when one of the loop's queues sent again; zero while it Stands.
	Ended  engine.Time
	Persistent bool

	// Roots is where the loop's waiting ended besides itself when it was found:
	// a host or contention outside that began it, perhaps, and may keep it.
	Roots []Root

	// SelfSustaining is set once nothing outside keeps the loop: only a fault or an
	// operator can end it then. A loop that is not alone may dissolve.
	SelfSustaining bool
}

// deadlockDetector looks for deadlocks.
type deadlockDetector struct {
	r     *Recorder
	minStuck engine.Time // how long a loop must have stood
	list  []Deadlock
	in    []int32 // by queue: 1 + the standing deadlock it is in; 0: none
	tick  func()
}

// samplesPerMinStuck makes the watch find a deadlock at most this fraction of its
// least time late.
const samplesPerMinStuck = 2

func (r *Recorder) newDeadlockDetector() *deadlockDetector {
	w := &deadlockDetector{r: r, minStuck: engine.Of(r.options.Deadlock), in: make([]int32, len(r.net.Ports())*priorities)}
	w.tick = w.sample
	r.scheduleAfter(w.minStuck/samplesPerMinStuck, w.tick)
	return w
}

// stuckSince is since when a paused queue has not sent.
func (w *deadlockDetector) stuckSince(queue int32) engine.Time {
	return max(w.r.pauses.queues[queue].since, w.r.queues.by[queue].last)
}

func (w *deadlockDetector) sample() {
	w.r.scheduleAfter(w.minStuck/samplesPerMinStuck, w.tick)
	now := w.r.net.Now()
	stuck := func(queue int32) bool {
		q := &w.r.queues.by[queue]
		return w.r.pauses.queues[queue].paused && q.in.Packets > q.out.Packets && now-w.stuckSince(queue) >= w.minStuck
	}
	// What may be news: a queue in no deadlock yet, a deadlock not alone yet.
	news := slices.ContainsFunc(w.list, func(d Deadlock) bool { return d.Persistent && !d.SelfSustaining })
	for queue := range w.in {
		news = news || w.in[queue] == 0 && stuck(int32(queue))
	}
	if !news {
		return // the usual case, without a look at every packet
	}
	g := WaitFor(w.r.net)
	for _, loop := range g.cycles(func(n Node) bool { return stuck(w.r.queue(n)) }) {
		w.addCycle(g, loop)
	}
}

// addCycle takes a loop down, or looks again at one that is known and may have
// grown.
func (w *deadlockDetector) addCycle(g *Graph, loop []Node) {
	var known int32
	var formed engine.Time
	for _, n := range loop {
		queue := w.r.queue(n)
		known = max(known, w.in[queue])
		formed = max(formed, w.stuckSince(queue))
	}
	roots := slices.DeleteFunc(g.Closure(loop...).Roots(), func(r Root) bool {
		return r.Kind == RootCycle && slices.Contains(r.Nodes, loop[0])
	})
	if known == 0 {
		w.list = append(w.list, Deadlock{Cycle: loop, Formed: formed, Found: g.At, Persistent: true, Roots: roots})
		known = int32(len(w.list))
	}
	w.list[known-1].SelfSustaining = len(roots) == 0
	for _, n := range loop {
		w.in[w.r.queue(n)] = known
	}
}

// queueSent is told that a queue sent.
func (w *deadlockDetector) queueSent(now engine.Time, queue int32) {
	known := w.in[queue]
	if known == 0 {
		return
	}
	w.list[known-1].Persistent, w.list[known-1].Ended = false, now
	for i := range w.in {
		if w.in[i] == known {
			w.in[i] = 0
		}
	}
}

// queue is the index of a queue's node.
func (r *Recorder) queue(n Node) int32 {
	return (r.base[n.Port.Node]+int32(n.Port.Port)-1)*priorities + int32(n.Priority)
}

// Deadlocks returns the deadlocks in the order they were found. The list is the
// Recorder's own.
func (r *Recorder) Deadlocks() []Deadlock {
	if r.deadlocks == nil {
		return nil
	}
	return r.deadlocks.list
}
