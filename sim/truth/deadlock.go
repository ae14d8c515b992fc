package truth

import (
	"slices"

	"github.com/weft-telemetry/weft/sim/engine"
)

// Deadlock is a loop of paused queues that wait for each other and sent nothing
// for as long as Options.Deadlock says. Pausing that goes round a loop and
// dissolves is none.
type Deadlock struct {
	Loop []Node // queues in the order they wait for each other, as first found

	// Formed is when the last of the loop's queues was paused or sent for the
	// last time; Found is when the watch looked and saw it.
	Formed, Found engine.Time

	// Ended is when one of the loop's queues sent again; zero while it Stands.
	Ended  engine.Time
	Stands bool

	// Roots is where the loop's waiting ended besides itself when it was found:
	// a host or contention outside that began it, perhaps, and may keep it.
	Roots []Root

	// Alone is set once nothing outside keeps the loop: only a fault or an
	// operator can end it then. A loop that is not alone may dissolve.
	Alone bool
}

// lockWatch looks for deadlocks.
type lockWatch struct {
	r     *Recorder
	least engine.Time // how long a loop must have stood
	list  []Deadlock
	in    []int32 // by queue: 1 + the standing deadlock it is in; 0: none
	tick  func()
}

// looksPerLeast makes the watch find a deadlock at most this fraction of its
// least time late.
const looksPerLeast = 2

func (r *Recorder) newLockWatch() *lockWatch {
	w := &lockWatch{r: r, least: engine.Of(r.options.Deadlock), in: make([]int32, len(r.net.Ports())*priorities)}
	w.tick = w.look
	r.later(w.least/looksPerLeast, w.tick)
	return w
}

// stuckSince is since when a paused queue has not sent.
func (w *lockWatch) stuckSince(queue int32) engine.Time {
	return max(w.r.pauses.queues[queue].since, w.r.queues.by[queue].last)
}

func (w *lockWatch) look() {
	w.r.later(w.least/looksPerLeast, w.tick)
	now := w.r.net.Now()
	stuck := func(queue int32) bool {
		q := &w.r.queues.by[queue]
		return w.r.pauses.queues[queue].paused && q.in.Packets > q.out.Packets && now-w.stuckSince(queue) >= w.least
	}
	// What may be news: a queue in no deadlock yet, a deadlock not alone yet.
	news := slices.ContainsFunc(w.list, func(d Deadlock) bool { return d.Stands && !d.Alone })
	for queue := range w.in {
		news = news || w.in[queue] == 0 && stuck(int32(queue))
	}
	if !news {
		return // the usual case, without a look at every packet
	}
	g := WaitFor(w.r.net)
	for _, loop := range g.cycles(func(n Node) bool { return stuck(w.r.queue(n)) }) {
		w.found(g, loop)
	}
}

// found takes a loop down, or looks again at one that is known and may have
// grown.
func (w *lockWatch) found(g *Graph, loop []Node) {
	var known int32
	var formed engine.Time
	for _, n := range loop {
		queue := w.r.queue(n)
		known = max(known, w.in[queue])
		formed = max(formed, w.stuckSince(queue))
	}
	roots := slices.DeleteFunc(g.Closure(loop...).Roots(), func(r Root) bool {
		return r.Kind == RootLoop && slices.Contains(r.Nodes, loop[0])
	})
	if known == 0 {
		w.list = append(w.list, Deadlock{Loop: loop, Formed: formed, Found: g.At, Stands: true, Roots: roots})
		known = int32(len(w.list))
	}
	w.list[known-1].Alone = len(roots) == 0
	for _, n := range loop {
		w.in[w.r.queue(n)] = known
	}
}

// moved is told that a queue sent.
func (w *lockWatch) moved(now engine.Time, queue int32) {
	known := w.in[queue]
	if known == 0 {
		return
	}
	w.list[known-1].Stands, w.list[known-1].Ended = false, now
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
	if r.locks == nil {
		return nil
	}
	return r.locks.list
}
