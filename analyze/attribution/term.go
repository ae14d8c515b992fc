package attribution

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// place returns the place of a queue, or nil.
func (e *engine) place(index int32) *Place {
	if index < 0 {
		return nil
	}
	r := &e.evidence.Queues[index]
	return &Place{r.Queue, r.Peer, r.PeerIsHost}
}

// termSum is a Term in the making.
type termSum struct {
	key            termKey
	time, min      float64
	queued         float64
	roots          []rootShare // nanoseconds of each
	passed, waited map[int32]float64
	behind         map[int32]float64
}

// termKey is what the parts of one term have in common.
type termKey struct {
	queue  int32
	kind   Kind
	reason Reason
	cycle  int
}

// account merges what the starts lead to into terms.
func (e *engine) account(visits []visit, starts []start, late float64) *Account {
	a := &Account{Flow: e.victim.Flow, Since: e.victim.Sent, Late: time.Duration(math.Round(late)), InFlight: e.victim.InFlight}
	for i := range visits {
		a.Stays = append(a.Stays, e.stay(&visits[i]))
	}
	if late <= 0 {
		return a
	}
	terms := e.sumTerms(starts, late)
	e.passStates(starts, terms)
	for i := range e.cycles {
		a.Deadlocks = append(a.Deadlocks, e.deadlockCycle(&e.cycles[i]))
	}
	order := e.queueOrder()
	all, certain := 0.0, 0.0
	for _, t := range terms {
		certain += t.min
	}
	for _, t := range terms {
		from := math.Round(all)
		all += t.time
		n := e.term(t, order)
		n.Time = time.Duration(math.Round(all) - from) // so that the terms sum to the lateness
		n.Min = min(time.Duration(t.min), n.Time)
		n.Max = max(n.Time, time.Duration(math.Ceil(min(late, late-(certain-t.min)))))
		n.Queued = min(n.Queued, n.Time)
		if n.Time > 0 {
			a.Terms = append(a.Terms, n)
		}
	}
	a.Since = e.victim.Sent + model.Time(math.Floor(e.since(terms, late)))
	slices.SortStableFunc(a.Terms, func(x, y Term) int { return cmp.Compare(y.Time, x.Time) })
	return a
}

// since returns when the first pause or contention began to which a part of the
// lateness is due that matters.
func (e *engine) since(terms []*termSum, late float64) (first float64) {
	for i := range e.states {
		if s := &e.states[i]; s.mass >= late*smallestShare {
			first = min(first, s.from)
		}
	}
	for _, t := range terms {
		for _, r := range t.roots {
			if e.roots[r.root].kind == Contention && r.share >= late*smallestShare {
				first = min(first, e.roots[r.root].since)
			}
		}
	}
	return first
}

func (e *engine) stay(v *visit) Stay {
	index, _ := e.hop(v.hop)
	s := Stay{Queue: index, From: e.victim.Sent + model.Time(math.Round(v.joins)), Until: e.victim.Sent + model.Time(math.Round(v.joins+v.wait))}
	if p := e.place(int32(index)); p != nil {
		s.Place = *p
	}
	return s
}

// sumTerms sums up the starts by place and kind; what they leave of the lateness
// is unexplained.
func (e *engine) sumTerms(starts []start, late float64) []*termSum {
	index := map[termKey]*termSum{}
	var list []*termSum
	at := func(k termKey) *termSum {
		t := index[k]
		if t == nil {
			t = &termSum{key: k, passed: map[int32]float64{}, waited: map[int32]float64{}, behind: map[int32]float64{}}
			index[k], list = t, append(list, t)
		}
		return t
	}
	left := late
	for i := range starts {
		s := &starts[i]
		left -= s.time
		e.sum.addEdge(e, &s.edge, 1, true)
		for _, r := range e.sum.take() {
			t := at(e.termKey(r.root))
			t.time += s.time * r.share
			t.min += s.certain * r.sure
			t.roots = append(t.roots, rootShare{r.root, s.time * r.share, 0})
			if s.root >= 0 {
				t.queued += s.time
			} else {
				t.waited[e.states[s.state].queue] += s.time * r.share
				t.behind[e.states[s.state].queue] += s.behind * r.share
			}
		}
	}
	if left > 0 {
		at(termKey{queue: -1, cycle: -1}).time += left
	}
	slices.SortFunc(list, func(x, y *termSum) int {
		return cmp.Or(cmp.Compare(y.time, x.time), cmp.Compare(x.key.queue, y.key.queue),
			cmp.Compare(x.key.kind, y.key.kind), cmp.Compare(x.key.reason, y.key.reason), cmp.Compare(x.key.cycle, y.key.cycle))
	})
	return list
}

func (e *engine) termKey(root int32) termKey {
	r := &e.roots[root]
	return termKey{r.queue, r.kind, r.reason, r.cycle}
}

// passStates lets the starts pass through the states, and adds to each term what
// passed through which queue.
func (e *engine) passStates(starts []start, terms []*termSum) {
	index := map[termKey]*termSum{}
	for _, t := range terms {
		index[t.key] = t
	}
	for i := range e.states {
		e.states[i].mass = 0
	}
	for i := range starts {
		if s := &starts[i]; s.root < 0 {
			e.states[s.state].mass += s.time
		}
	}
	pass := func(s *state, root int32, time float64) {
		if t := index[e.termKey(root)]; t != nil {
			t.passed[s.queue] += time
		}
	}
	for i := len(e.components) - 1; i >= 0; i-- {
		c := &e.components[i]
		if c.steps > 1 {
			e.passCycle(c, pass)
		}
		for _, m := range c.members {
			s := &e.states[m]
			if s.mass == 0 {
				continue
			}
			for _, r := range s.shares {
				if c.steps == 1 {
					pass(s, r.root, s.mass*r.share)
				}
			}
			for _, n := range s.edges {
				if n.state >= 0 && e.states[n.state].order < s.order {
					e.states[n.state].mass += s.mass * n.share
				}
			}
		}
	}
}

// term returns a term without its times.
func (e *engine) term(t *termSum, order map[int32]int) Term {
	n := Term{
		Kind: t.key.kind, Reason: t.key.reason, Place: e.place(t.key.queue), Deadlock: t.key.cycle,
		Queued: time.Duration(math.Round(t.queued)), Via: e.via(t, order),
	}
	if n.Kind == Contention {
		n.Culprits, n.Later = e.culprits(t)
	}
	return n
}

// queueOrder returns an order of the queues that were passed: those that wait
// for others have higher numbers.
func (e *engine) queueOrder() map[int32]int {
	order := map[int32]int{}
	for i := range e.states {
		if s := &e.states[i]; s.mass > 0 {
			order[s.queue] = max(order[s.queue], s.order)
		}
	}
	return order
}

// via returns the paused queues of a term, upstream first.
func (e *engine) via(t *termSum, order map[int32]int) (list []PausedQueue) {
	var queues []int32
	for n, passed := range t.passed {
		if passed >= 0.5 && (n != t.key.queue || t.key.kind == Deadlock || t.waited[n] > 0) {
			queues = append(queues, n)
		}
	}
	slices.SortFunc(queues, func(a, b int32) int {
		return cmp.Or(cmp.Compare(sign(t.waited[b]), sign(t.waited[a])), cmp.Compare(order[b], order[a]), cmp.Compare(a, b))
	})
	for _, n := range queues {
		ns := func(v float64) time.Duration { return time.Duration(math.Round(v)) }
		list = append(list, PausedQueue{*e.place(n), ns(max(min(t.passed[n], t.time), t.waited[n])), ns(t.waited[n]), ns(t.behind[n])})
	}
	return list
}

func sign(v float64) int {
	if v > 0 {
		return 1
	}
	return 0
}

// deadlockCycle returns a cycle with its trigger.
func (e *engine) deadlockCycle(c *cycle) DeadlockCycle {
	d := DeadlockCycle{Persistent: c.persistent}
	for _, n := range c.queues {
		d.Cycle = append(d.Cycle, *e.place(n))
	}
	d.Closed = e.victim.Sent + model.Time(math.Round(e.closedAt(c)))
	if t := e.trigger(c); t != nil {
		d.Trigger, d.TriggerKind, d.TriggerCulprits = e.place(t.queue), t.kind, t.culprits
		d.Inside = t.kind == Contention && slices.Contains(c.queues, t.queue)
	}
	return d
}
