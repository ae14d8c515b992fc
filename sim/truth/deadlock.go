package truth

import (
	"slices"

	"github.com/weft-telemetry/weft/sim/engine"
)

// Deadlock is a cycle of paused queues that wait for each other and sent
// nothing for at least Options.Deadlock. A cycle of pauses that dissolves
// before is not one.
type Deadlock struct {
	Cycle []Node // queues in the order they wait for each other, as first found

	// Formed is when the last of the cycle's queues was paused or sent for the
	// last time; Found is when a sample found it.
	Formed, Found engine.Time

	// Ended is when one of the cycle's queues sent again; zero while it is
	// Persistent.
	Ended      engine.Time
	Persistent bool

	// Roots is where the cycle's other dependencies ended when it was found: a
	// host or contention outside that may have triggered it and may keep it.
	Roots []Root

	// SelfSustaining is set once nothing outside keeps the cycle: only a fault
	// or an operator can end it then. Another cycle may dissolve.
	SelfSustaining bool
}

// deadlockDetector finds deadlocks.
type deadlockDetector struct {
	r        *Recorder
	minStuck engine.Time // how long a cycle must have been stuck
	list     []Deadlock
	in       []int32       // by queue: 1 + the persistent deadlock it is in; 0: none
	sent     []engine.Time // by queue: when it first sent in that deadlock, which has ended then; 0: not yet
	tick     func()
}

// samplesPerMinStuck bounds how late a deadlock is found, as a fraction of
// minStuck.
const samplesPerMinStuck = 2

func (r *Recorder) newDeadlockDetector() *deadlockDetector {
	w := &deadlockDetector{r: r, minStuck: engine.Of(r.options.Deadlock), in: make([]int32, len(r.net.Ports())*priorities)}
	w.sent = make([]engine.Time, len(w.in))
	w.tick = w.sample
	r.scheduleAfter(w.minStuck/samplesPerMinStuck, w.tick)
	return w
}

// stuckSince returns since when a paused queue has not sent.
func (w *deadlockDetector) stuckSince(queue int32) engine.Time {
	return max(w.r.pauses.queues[queue].since, w.r.queues.by[queue].last)
}

func (w *deadlockDetector) sample() {
	w.end()
	w.r.scheduleAfter(w.minStuck/samplesPerMinStuck, w.tick)
	now := w.r.net.Now()
	stuck := func(queue int32) bool {
		q := &w.r.queues.by[queue]
		return w.r.pauses.queues[queue].paused && q.in.Packets > q.out.Packets && now-w.stuckSince(queue) >= w.minStuck
	}
	// Possible news: a queue in no deadlock yet, a deadlock not self-sustaining
	// yet.
	news := slices.ContainsFunc(w.list, func(d Deadlock) bool { return d.Persistent && !d.SelfSustaining })
	for queue := range w.in {
		news = news || w.in[queue] == 0 && stuck(int32(queue))
	}
	if !news {
		return // the usual case, without reading every packet
	}
	g := WaitFor(w.r.net)
	for _, loop := range g.cycles(func(n Node) bool { return stuck(w.r.queue(n)) }) {
		w.addCycle(g, loop)
	}
}

// addCycle records a cycle, or updates one that is known and may have grown.
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

// queueSent records that a queue sent: its deadlock has ended. Other queues of
// it may send at the same time on another core, so end looks at all of them.
func (w *deadlockDetector) queueSent(now engine.Time, queue int32) {
	if w.in[queue] != 0 && w.sent[queue] == 0 {
		w.sent[queue] = now
	}
}

// end ends the deadlocks of which a queue has sent.
func (w *deadlockDetector) end() {
	ended := false
	for queue, at := range w.sent {
		if at == 0 {
			continue
		}
		w.sent[queue], ended = 0, true
		if d := &w.list[w.in[queue]-1]; d.Persistent || at < d.Ended {
			d.Persistent, d.Ended = false, at
		}
	}
	for queue, known := range w.in {
		if ended && known != 0 && !w.list[known-1].Persistent {
			w.in[queue] = 0
		}
	}
}

// queue returns the index of a queue's node.
func (r *Recorder) queue(n Node) int32 {
	return (r.base[n.Port.Node]+int32(n.Port.Port)-1)*priorities + int32(n.Priority)
}

// Deadlocks returns the deadlocks in the order they were found. The list
// belongs to the Recorder.
func (r *Recorder) Deadlocks() []Deadlock {
	if r.deadlocks == nil {
		return nil
	}
	r.deadlocks.end()
	return r.deadlocks.list
}
