package flowset

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
)

// outgoing is what a program of outgoing packets needs beside: the slot that has ended
// and that packets still wait of.
//
// Paper: a switch may keep one flowset for incoming flows and one for outgoing ones,
// each by its own time. Here: a packet is in the same slot of both, so that their
// difference is what the switch dropped, and not what was in its queues at the end.
type outgoing struct {
	on      bool
	linger  time.Duration
	lingers bool // the other bank is that of slot, and still filled
	slot    slot
}

// endLinger exports the slot that has ended.
func (p *Program) endLinger() {
	p.outgoing.lingers = false
	p.out.start(p.bank^1, p.outgoing.slot)
}

// countLate counts a packet that arrived before the current slot.
func (p *Program) countLate(ev *inswitch.Event, arrived model.Time) {
	if o := &p.outgoing; !o.lingers || arrived < o.slot.start {
		p.missLate(ev)
		return
	}
	p.bank ^= 1
	p.updateFilling()
	p.count(ev)
	p.bank ^= 1
	p.updateFilling()
}

// missLate counts a packet whose slot is exported already.
func (p *Program) missLate(ev *inswitch.Event) {
	at, key := int(ev.In-1)*p.perPort, ev.Packet.Key
	v4, v6 := at < len(p.v4), at < len(p.v6)
	switch {
	case v6 && (key.V6 || !v4):
		p.v6[at].countLate(p.bank, p.active)
	case v4:
		p.v4[at].countLate(p.bank, p.active)
	}
}

func (u *unit[K]) countLate(bank int, active bool) {
	n := &u.missed
	if active {
		n = &u.banks[bank].missed
	}
	saturatingIncrement(n)
}
