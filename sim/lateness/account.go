package lateness

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// ErrUnknown means that the log has no such packet: it was never sent, or
// before the log begins.
var ErrUnknown = errors.New("lateness: no such packet in the log")

// ErrLost means that the packet was dropped or ended at a switch.
var ErrLost = errors.New("lateness: the packet was dropped")

// Queue is an egress queue. Class 8 is the control queue, which PFC never
// pauses.
type Queue struct {
	Port  model.Port
	Class uint8
}

// Hop is the wait in one queue, from Enqueued to Began.
type Hop struct {
	Queue
	Enqueued engine.Time
	Began    engine.Time // of the transmission; while it waits, the time of the account
	Waiting  bool
	Paused   engine.Time // of the wait: the queue was paused
	Queued   engine.Time // the rest of the wait: others held the wire
	Wire     engine.Time // transmission and propagation, up to At
}

// Kind is what a term of an account is owed to.
type Kind uint8

// Kinds.
const (
	Contention    Kind = iota // the queue's own packets, and others on its wire
	HostInjection             // a host's PAUSE frames, or its slow receive buffer
	DeadlockCycle             // queues that pause each other
	Unexplained               // what lies before the log
)

var kindNames = [...]string{"contention", "host injection", "deadlock cycle", "unexplained"}

// String prints the kind's name.
func (k Kind) String() string { return kindNames[k] }

// Party is who contended for a queue, or the host that paused it.
type Party struct {
	Flow        model.FlowKey // the zero key: none
	Acks        bool          // packets that the flow's destination sends
	Host        model.NodeID  // where the kind is HostInjection
	PauseFrames bool          // pause frames on the wire
	Time        engine.Time
}

// Term is a part of the lateness.
type Term struct {
	Place    Queue // the congested queue, or the one that the host paused; the first of a cycle
	Kind     Kind
	Via      []Queue // paused queues, each because of the next, the last because of Place; the packet waited in the first
	Parties  []Party // their times add up to Time; none where the kind is DeadlockCycle or Unexplained
	Deadlock *Deadlock
	Time     engine.Time
}

// Deadlock is a deadlock cycle.
type Deadlock struct {
	Cycle      []Queue     // each paused because of the next, the last because of the first
	Begin, End engine.Time // when all of them were paused at once; End is the time of the account if they are still
	Persistent bool        // they are
	Origins    []Term      // what the pauses of the cycle go back to, by their part in it
	Closing    []Term      // what those go back to at Begin, when the last of them began and closed it: a microsecond of each
}

// Account is the account of a late packet, or of one and its acknowledgement.
type Account struct {
	Flow     model.FlowKey
	Sent, At engine.Time // At: its arrival; while it is in flight, the time of the account
	InFlight bool
	Wire     engine.Time // transmission and propagation
	Late     engine.Time // the rest
	Hops     []Hop
	Ack      int         // index of the acknowledgement's first hop; 0: none
	Host     engine.Time // between the packet's arrival and its acknowledgement, in a slow receiver
	Terms    []Term      // they add up to Late, the largest first
}

// Account accounts for the packet of a key that its host began to send at an
// instant. It must be called between runs, or from Network.At.
func (o *Oracle) Account(key model.FlowKey, sent engine.Time) (Account, error) {
	return o.account(key, sent, o.net.Now(), false)
}

// AccountRoundTrip is Account for the packet and its acknowledgement, which a
// host's round-trip time measures. Where one acknowledgement covers several
// packets, only the one that caused it has a round trip; the account of another
// is that of the packet alone.
func (o *Oracle) AccountRoundTrip(key model.FlowKey, sent engine.Time) (Account, error) {
	return o.account(key, sent, o.net.Now(), true)
}

// AccountRoundTripAt is what AccountRoundTrip returned, or would have, at an
// instant before now: the age of a packet that was in flight then. The log must
// still have all that mattered then; what it has lost is unexplained. Packets
// that were dropped from a queue since no longer count as a part of its backlog.
func (o *Oracle) AccountRoundTripAt(key model.FlowKey, sent, at engine.Time) (Account, error) {
	return o.account(key, sent, min(at, o.net.Now()), true)
}

func (o *Oracle) account(key model.FlowKey, sent, at engine.Time, roundTrip bool) (Account, error) {
	o.generation++
	t := trip{oracle: o, now: at}
	err := t.follow(key, sent, roundTrip)
	if err != nil {
		return Account{}, fmt.Errorf("%w: %v sent at %v", err, key, sent)
	}
	a := Account{
		Flow: key, Sent: t.sent, At: t.at, InFlight: t.inFlight, Wire: t.wire, Host: t.host, Ack: t.ack,
	}
	a.Late = t.at - t.sent - t.wire
	l := o.book(&t, a.Late, nil)
	if l.looped {
		if groups := l.groups(); len(groups) > 0 {
			l = o.book(&t, a.Late, groups)
		}
	}
	for i := range t.hops {
		a.Hops = append(a.Hops, t.hops[i].Hop)
	}
	a.Terms = l.terms(&t, a.Late)
	return a, nil
}

// book books all waits of a packet.
func (o *Oracle) book(t *trip, late engine.Time, groups map[pauseID]int) *ledger {
	l := newLedger(o, t.now, late)
	l.group = groups
	for i := range t.hops {
		if t.hops[i].queue != nil {
			l.wait(&t.hops[i])
		}
	}
	l.settle()
	return l
}

// wait books the wait in one queue.
func (l *ledger) wait(h *hop) {
	q, until := h.queue, h.Began
	q.extend(l.generation)
	w, n := q.waitOf(h.record, until), l.root(h.queue)
	give := func(party int32, d engine.Time) { n.contention.give(party, l.units(d)) }
	q.eachAhead(w.from, w.to, w.available, w.ahead, give)
	unpaused := h.Enqueued + w.contention
	q.eachOther(h.Enqueued, unpaused, give)
	if w.others > 0 {
		l.others(h, n, unpaused, until, w.others)
	}
	l.owe(n, nil, nil, l.units(w.high-w.low), w.low, w.high, engine.Forever)
}

// others books what is owed to others on the wire in [from, to), the latest
// first, as with pauses.
func (l *ledger) others(h *hop, n *node, from, to, amount engine.Time) {
	q := h.queue
	skip := q.heldByOthers(from, to) - amount
	q.eachOther(from, to, func(party int32, d engine.Time) {
		d, skip = max(0, d-max(0, skip)), skip-d
		n.contention.give(party, l.units(d))
		amount -= d
	})
	if amount > 0 {
		// A program changed sizes in the queue.
		n.contention.give(q.at(h.record).party, l.units(amount))
	}
}

// String prints the account, a line for each term.
func (a *Account) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v sent at %v late by %v after %v on the wire\n", a.Flow, a.Sent, a.Late, a.Wire)
	for i := range a.Terms {
		t := &a.Terms[i]
		fmt.Fprintf(&b, "  %v %v at %v", t.Time, t.Kind, t.Place)
		if len(t.Via) > 0 {
			fmt.Fprintf(&b, " via %v", t.Via)
		}
		for _, p := range t.Parties {
			switch {
			case t.Kind == HostInjection:
				fmt.Fprintf(&b, ", node %d", p.Host)
			case p.PauseFrames:
				fmt.Fprintf(&b, ", pause frames %v", p.Time)
			case p.Acks:
				fmt.Fprintf(&b, ", acknowledgements %v %v", p.Flow, p.Time)
			default:
				fmt.Fprintf(&b, ", %v %v", p.Flow, p.Time)
			}
		}
		if d := t.Deadlock; d != nil {
			fmt.Fprintf(&b, ", cycle %v persistent %v", d.Cycle, d.Persistent)
			for j := range d.Closing {
				fmt.Fprintf(&b, ", closed by %v at %v: %v", d.Closing[j].Kind, d.Closing[j].Place, d.Closing[j].Time)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// String prints "4.1/3": node, port and class.
func (q Queue) String() string { return fmt.Sprintf("%v/%d", q.Port, q.Class) }
