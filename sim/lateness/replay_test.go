package lateness

import (
	"math"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// root is what a nanosecond of lateness is owed to.
type root struct {
	place Queue
	kind  Kind
	party int32 // of contention
}

// replayed is a queue, replayed nanosecond by nanosecond: all times of the
// fabrics here are whole nanoseconds.
type replayed struct {
	q       *queue
	all     []int64 // by time: transmission time ahead of a packet that joined then
	ideal   []int64 // the same without pauses
	first   []int32 // the first record of ideal
	joined  []int32 // records that joined
	served  []int32 // the party that ideal serves; -1: none
	other   []int32 // the party of another queue on the wire; -1: none
	begun   map[int]int64
	paused  []int64 // nanoseconds paused before a time
	isPause []bool
	busy    []int64 // paused nanoseconds before the busy period
	held    map[model.PortID][]int64
	blame   [][]float64 // by paused nanosecond: sum of roots before it
}

// replay is the slow reference of an account: it steps through the raw log,
// nanosecond by nanosecond, and computes forwards for each paused nanosecond of
// each queue what it is owed to.
type replay struct {
	o      *Oracle
	length int64
	queues map[*queue]*replayed
	order  []*replayed
	roots  map[root]int
}

func ns(t engine.Time) int64 {
	if t%engine.Nanosecond != 0 {
		panic("not a whole nanosecond: " + t.String())
	}
	return int64(t / engine.Nanosecond)
}

func newReplay(o *Oracle) *replay {
	r := &replay{o: o, length: ns(o.net.Now()) + 1, queues: map[*queue]*replayed{}, roots: map[root]int{}}
	for _, q := range o.queues {
		if len(q.list)+len(q.pauses.list) > 0 {
			x := r.step(q)
			r.queues[q] = x
			r.order = append(r.order, x)
		}
	}
	for t := range r.length {
		for _, x := range r.order {
			if x.isPause[t] {
				sum := append([]float64(nil), x.blame[len(x.blame)-1]...)
				for k, v := range r.blame(x, t) {
					sum = r.put(sum, k, v)
				}
				x.blame = append(x.blame, sum)
			}
		}
	}
	return r
}

// step replays one queue.
func (r *replay) step(q *queue) *replayed {
	x := &replayed{q: q, begun: map[int]int64{}, held: map[model.PortID][]int64{}, blame: [][]float64{nil}}
	n := r.length
	x.all, x.ideal, x.busy, x.paused = make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n+1)
	x.first, x.joined, x.served, x.other = make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	x.isPause = make([]bool, n)
	ownWire := make([]bool, n)
	for t := range n {
		x.other[t] = -1
	}
	for _, s := range q.port.list {
		for t := ns(s.start); t < min(n, ns(s.end())); t++ {
			if s.class == q.class {
				ownWire[t] = true
			} else {
				x.other[t] = s.party
			}
		}
	}
	for _, p := range q.pauses.list {
		end := n
		if p.end != engine.Forever {
			end = ns(p.end)
		}
		for t := ns(p.begin); t < end; t++ {
			x.isPause[t] = true
		}
	}
	left := make([]int64, len(q.list)) // of each record in ideal
	joined, gone, head := 0, 0, 0
	work, busy := int64(0), int64(0)
	for t := range n {
		idle := joined == gone && work == 0
		for ; gone < joined && q.list[gone].started <= engine.Time(t)*engine.Nanosecond; gone++ {
			x.hold(&q.list[gone], t, -1)
		}
		for ; joined < len(q.list) && ns(q.list[joined].enqueued) <= t; joined++ {
			rec := &q.list[joined]
			if idle {
				busy, idle = x.paused[t], false
			}
			left[joined] = ns(q.port.port.TransmitTime(rec.size))
			work += left[joined]
			x.hold(rec, t, 1)
		}
		for ; gone < joined && q.list[gone].started <= engine.Time(t)*engine.Nanosecond; gone++ {
			x.hold(&q.list[gone], t, -1)
		}
		x.all[t], x.busy[t] = work, busy
		x.joined[t], x.first[t] = int32(joined), int32(head)
		for i := head; i < joined; i++ {
			x.ideal[t] += left[i]
		}
		x.served[t] = -1
		if x.other[t] < 0 && head < joined {
			if _, ok := x.begun[head]; !ok {
				x.begun[head] = t
			}
			x.served[t] = q.list[head].party
			if left[head]--; left[head] == 0 {
				head++
			}
		}
		if ownWire[t] {
			work--
		}
		x.paused[t+1] = x.paused[t]
		if x.isPause[t] {
			x.paused[t+1]++
		}
		for _, h := range x.held {
			if t+1 < n {
				h[t+1] = h[t]
			}
		}
	}
	return x
}

func (x *replayed) hold(rec *record, t, sign int64) {
	if x.held[rec.ingress] == nil {
		x.held[rec.ingress] = make([]int64, len(x.all))
	}
	x.held[rec.ingress][t] += sign * int64(rec.size)
}

func (r *replay) put(v []float64, k root, by float64) []float64 {
	i, ok := r.roots[k]
	if !ok {
		i = len(r.roots)
		r.roots[k] = i
	}
	for len(v) <= i {
		v = append(v, 0)
	}
	v[i] += by
	return v
}

// blame returns what the pause of a queue at an instant is owed to.
func (r *replay) blame(x *replayed, t int64) map[root]float64 {
	out := map[root]float64{}
	here := queueName(x.q)
	if x.q.port.port.Peer().Host() != nil {
		out[root{here, HostInjection, 0}] = 1
		return out
	}
	in := x.q.port.port.Peer().ID
	for y := t - ns(x.q.port.lag); y >= 0; y-- {
		total := int64(0)
		for _, d := range r.downstream(x) {
			if h := d.held[in]; h != nil {
				total += h[y]
			}
		}
		if total == 0 {
			continue // what was held last
		}
		for _, d := range r.downstream(x) {
			if h := d.held[in]; h != nil && h[y] > 0 {
				r.explain(d, y, float64(h[y])/float64(total), out)
			}
		}
		return out
	}
	out[root{here, Unexplained, 0}] = 1
	return out
}

func (r *replay) downstream(x *replayed) (all []*replayed) {
	for _, p := range x.q.port.port.Peer().Switch().Ports() {
		if d := r.queues[r.o.ports[r.o.portIndex(p)].queues[x.q.class]]; d != nil {
			all = append(all, d)
		}
	}
	return all
}

// explain adds why a queue has a backlog at an instant.
func (r *replay) explain(x *replayed, t int64, weight float64, out map[root]float64) {
	all := float64(x.all[t])
	left := x.ideal[t]
	for i := int(x.joined[t]) - 1; i >= int(x.first[t]); i-- {
		d := min(left, ns(x.q.port.port.TransmitTime(x.q.list[i].size)))
		out[root{queueName(x.q), Contention, x.q.list[i].party}] += weight * float64(d) / all
		left -= d
	}
	high := x.paused[t]
	low := max(high-(x.all[t]-x.ideal[t]), x.busy[t])
	r.between(x, low, high, weight/all, out)
}

func (r *replay) between(x *replayed, low, high int64, weight float64, out map[root]float64) {
	a, b := x.blame[low], x.blame[high]
	for k, i := range r.roots {
		if i < len(b) {
			v := b[i]
			if i < len(a) {
				v -= a[i]
			}
			if v > 0 {
				out[k] += weight * v
			}
		}
	}
}

// account returns the roots of the waits of a packet, in nanoseconds.
func (r *replay) account(t *trip) map[root]float64 {
	out := map[root]float64{}
	for _, h := range t.hops {
		if h.queue == nil {
			continue
		}
		x, until := r.queues[h.queue], h.Began
		ideal, ok := x.begun[h.record]
		if !ok || ideal > ns(until) {
			ideal = ns(until)
		}
		from := ns(h.Enqueued)
		for i := from; i < ideal; i++ {
			who := x.served[i]
			if who < 0 {
				who = x.other[i]
			}
			out[root{queueName(x.q), Contention, who}]++
		}
		high := x.paused[ns(until)]
		low := max(high-(ns(until)-ideal), x.busy[from])
		r.between(x, low, high, 1, out)
		others := ns(until) - ideal - (high - low)
		for i := ns(until) - 1; others > 0; i-- {
			if x.other[i] >= 0 {
				out[root{queueName(x.q), Contention, x.other[i]}]++
				others--
			}
		}
	}
	if t.host > 0 {
		out[root{t.hops[t.data-1].Queue, HostInjection, 0}] += float64(ns(t.host))
	}
	return out
}

// rootsOf returns the roots of an account's terms; a deadlock cycle counts as
// what it goes back to.
func (o *Oracle) rootsOf(terms []Term) map[root]float64 {
	out := map[root]float64{}
	for _, t := range terms {
		switch t.Kind {
		case DeadlockCycle:
			sum, scaled := 0.0, o.rootsOf(t.Deadlock.Origins)
			for _, v := range scaled {
				sum += v
			}
			for k, v := range scaled {
				out[k] += v / sum * float64(t.Time) / 1000
			}
		case Contention:
			for _, p := range t.Parties {
				out[root{t.Place, t.Kind, o.partyOf[partyKey{p.Flow, p.Acks, p.PauseFrames}]}] += float64(p.Time) / 1000
			}
		default:
			out[root{t.Place, t.Kind, 0}] += float64(t.Time) / 1000
		}
	}
	return out
}

// distance is what two accounts attribute differently, in nanoseconds.
func distance(a, b map[root]float64) float64 {
	sum := 0.0
	for k, v := range a {
		sum += math.Abs(v - b[k])
	}
	for k, v := range b {
		if _, ok := a[k]; !ok {
			sum += v
		}
	}
	return sum / 2
}
