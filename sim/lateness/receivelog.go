package lateness

import (
	"sort"

	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// receiveLog lists the data packets that a host received: at their arrival, or
// later where it is slow.
type receiveLog struct{ list []reception }

type reception struct {
	at, sent engine.Time
	party    int32
}

func (l *receiveLog) add(r reception, horizon engine.Time) {
	if n := len(l.list); n > 0 && n == cap(l.list) {
		k := sort.Search(n, func(i int) bool { return l.list[i].at >= horizon })
		if k >= n/2 {
			l.list = l.list[:copy(l.list, l.list[k:])]
		}
	}
	l.list = append(l.list, r)
}

// find returns when a packet was received that arrived at an instant.
func (l *receiveLog) find(who int32, arrival, sent engine.Time) (engine.Time, bool) {
	i := sort.Search(len(l.list), func(i int) bool { return l.list[i].at >= arrival })
	for ; i < len(l.list); i++ {
		if r := &l.list[i]; r.sent == sent && r.party == who {
			return r.at, true
		}
	}
	return 0, false
}

// Delivered is part of sim.Observer.
func (o *Oracle) Delivered(now engine.Time, p *sim.Packet, to *sim.Host) {
	o.Observer.Delivered(now, p, to)
	o.receive(now, p, to)
}

// receive logs a packet of a flow that ends at a host.
func (o *Oracle) receive(now engine.Time, p *sim.Packet, at *sim.Host) {
	if id, back := p.Flow(); id < 0 || back {
		return
	}
	who, ok := o.partyOf[o.partyKey(p)]
	if !ok {
		return // nothing of it was logged
	}
	o.received[at.ID].add(reception{now, p.Sent, who}, o.horizon(now))
}
