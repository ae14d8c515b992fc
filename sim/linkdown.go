package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// LinkDown takes a link out of service in both directions. Packets in flight
// and those sent to it are dropped. With Up set it flaps: down for Down, up for
// Up.
type LinkDown struct {
	Port     model.Port
	Down, Up time.Duration
}

func (f LinkDown) String() string { return fmt.Sprintf("link of port %v down", f.Port) }

func (f LinkDown) check(n *Network) error { return n.hasPort(f.Port) }

func (f LinkDown) apply(n *Network) func() {
	p := n.Port(f.Port)
	over := false
	var ends []func()
	up := func() {
		for _, end := range ends {
			end()
		}
		ends = nil
		p.repeatPauses()
		p.peer.repeatPauses()
	}
	down := func() {
		for _, q := range []*Port{p, p.peer} {
			ends = append(ends, q.impair.add(&impairment{down: true}))
			q.discardInFlight()
		}
	}
	var turn func()
	turn = func() {
		if over {
			return
		}
		wait := f.Up
		if ends == nil {
			down()
			wait = f.Down
		} else {
			up()
		}
		if f.Up > 0 {
			n.At(n.Now()+engine.Of(wait), turn)
		}
	}
	turn()
	return func() { over = true; up() }
}

// discardInFlight drops the packets in flight to the port and clears the pauses
// of both ends: a link that comes back starts afresh.
func (p *Port) discardInFlight() {
	n := p.w.net
	for p.inbox.head != nil {
		n.drop(p.inbox.pop(), p.peer, DropLinkDown)
	}
	*p.due = min(p.txAt, p.wakeAt)
	p.pfcDue = 0
	for prio := range model.Priority(numPriorities) {
		p.refreshGen[prio]++
		p.pauseGen[prio]++
		p.setPaused(prio, false)
		if p.sw != nil {
			p.sw.buffer.SetPaused(p.ID, prio, false)
		}
	}
	p.pfcStop = 0
}

// repeatPauses makes a host that pauses its switch do so again on a link that
// came back. A switch does it when its buffer fills.
func (p *Port) repeatPauses() {
	if p.host == nil || len(p.impair) > 0 && slices.ContainsFunc(p.impair, func(im *impairment) bool { return im.down }) {
		return
	}
	for prio, wishes := range p.host.pausing {
		if wishes > 0 {
			p.sendPause(model.Priority(prio), true)
		}
	}
}
