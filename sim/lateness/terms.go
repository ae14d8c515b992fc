package lateness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/weft-telemetry/weft/sim/engine"
)

// rounder turns units into picoseconds so that sums stay exact.
type rounder struct {
	shift uint
	sum   uint64
}

func (r *rounder) next(units uint64) engine.Time {
	before := r.sum >> r.shift
	r.sum += units
	return engine.Time(r.sum>>r.shift - before)
}

// terms returns the account's terms. They add up to the lateness: a difference
// is a mistake in the ledger.
func (l *ledger) terms(t *trip, late engine.Time) []Term {
	r := &rounder{shift: l.shift}
	all := l.rootTerms(r, nil)
	for _, e := range l.entries {
		if d := r.next(e.amount); d > 0 {
			all = append(all, Term{
				Place: queueName(e.cycle.queues[0]), Kind: DeadlockCycle, Via: e.via.path(), Time: d,
				Deadlock: l.deadlock(e.cycle),
			})
		}
	}
	if t.host > 0 {
		last := t.hops[t.data-1]
		all = append(all, Term{
			Place: last.Queue, Kind: HostInjection, Time: r.next(l.units(t.host)),
			Parties: []Party{{Host: l.oracle.net.Port(last.Port).Peer().Node, Time: t.host}},
		})
	}
	if r.sum != l.units(late) {
		panic(fmt.Sprintf("lateness: booked %d units of %d", r.sum, l.units(late)))
	}
	sortTerms(all)
	return all
}

// rootTerms returns the terms of the nodes of a cycle's search, or of those of
// the account itself.
func (l *ledger) rootTerms(r *rounder, c *cycle) (all []Term) {
	for _, n := range l.nodes {
		if n.cycle != c {
			continue
		}
		place, via := queueName(n.queue), n.parent.path()
		if t := l.contentionTerm(r, n); t.Time > 0 {
			t.Place, t.Via = place, via
			all = append(all, t)
		}
		if d := r.next(n.host); d > 0 {
			all = append(all, Term{
				Place: place, Kind: HostInjection, Via: via, Time: d,
				Parties: []Party{{Host: n.queue.port.port.Peer().Node, Time: d}},
			})
		}
		if d := r.next(n.unexplained); d > 0 {
			all = append(all, Term{Place: place, Kind: Unexplained, Via: via, Time: d})
		}
	}
	return all
}

func (l *ledger) contentionTerm(r *rounder, n *node) (t Term) {
	t.Kind = Contention
	owed := n.contention.resolve(n.queue)
	for _, who := range slices.Sorted(maps.Keys(owed)) {
		if d := r.next(owed[who]); d > 0 {
			p := l.oracle.parties[who]
			t.Parties = append(t.Parties, Party{Flow: p.key, Acks: p.acks, PauseFrames: p.pfc, Time: d})
			t.Time += d
		}
	}
	slices.SortStableFunc(t.Parties, func(a, b Party) int { return cmp.Compare(b.Time, a.Time) })
	return t
}

func sortTerms(all []Term) {
	slices.SortStableFunc(all, func(a, b Term) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), a.Place.Port.Compare(b.Place.Port), cmp.Compare(a.Kind, b.Kind))
	})
}

// path returns the chain of queues up to n.
func (n *node) path() (queues []Queue) {
	for ; n != nil; n = n.parent {
		queues = append(queues, queueName(n.queue))
	}
	slices.Reverse(queues)
	return queues
}

// deadlock describes a cycle and how it began.
func (l *ledger) deadlock(c *cycle) *Deadlock {
	if c.deadlock != nil {
		return c.deadlock
	}
	d := &Deadlock{Origins: l.rootTerms(&rounder{shift: l.shift}, c)}
	for _, q := range c.queues {
		d.Cycle = append(d.Cycle, queueName(q))
	}
	d.Begin, d.End, d.Persistent = c.common(l.now)
	sortTerms(d.Origins)
	d.Closing = l.oracle.closing(c.queues, d.Begin)
	c.deadlock = d
	return d
}

// closing returns what the pauses of a cycle's queues go back to from the instant on at
// which the last of them began. Each counts the same. Before it the cycle was open: no
// chain is a loop.
func (o *Oracle) closing(queues []*queue, at engine.Time) []Term {
	const each = engine.Microsecond
	l := newLedger(o, at+1, each*engine.Time(len(queues)))
	for _, q := range queues {
		l.oweTo(l.root(q), nil, nil, q.pauses.last(at), l.units(each), at, at+1, engine.Forever)
	}
	l.settle()
	all := l.rootTerms(&rounder{shift: l.shift}, nil)
	sortTerms(all)
	return all
}
