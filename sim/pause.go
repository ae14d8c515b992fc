package sim

import (
	"math/bits"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/pfc"
)

// sendPause asks the neighbour to pause or resume a priority, as soon as the
// wire is free. A frame that still waits is replaced: an older one that arrived
// after it would undo the newest request.
func (p *Port) sendPause(prio model.Priority, stop bool) {
	bit := uint8(1) << prio
	p.pfcDue |= bit
	p.pfcStop &^= bit
	if stop {
		p.pfcStop |= bit
	}
	p.refreshGen[prio]++
	p.kick()
}

// pauseFrame makes the next frame that is due. A pause with a duration is
// repeated at half of it while it is needed.
func (p *Port) pauseFrame() *Packet {
	w := p.w
	n := w.net
	// Round robin, so that one priority that alternates cannot delay the
	// others: headroom is computed for one frame of each.
	prio := model.Priority(bits.TrailingZeros8(bits.RotateLeft8(p.pfcDue, -int(p.pfcNext)))+int(p.pfcNext)) & 7
	p.pfcNext = uint8(prio+1) & 7
	p.pfcDue &^= 1 << prio
	p.PFC[prio].Sent++
	pkt := w.pool.get()
	pkt.Kind, pkt.Control, pkt.Size, pkt.Priority = KindPFC, true, n.pfcSize, prio
	if p.pfcStop>>prio&1 == 0 {
		w.counts.Resumes++
		return pkt
	}
	w.counts.Pauses++
	pkt.Sent = engine.Forever
	if n.cfg.PauseTime > 0 {
		// A frame holds whole quanta of this link's speed.
		quanta := pfc.QuantaOf(n.cfg.PauseTime, p.rate)
		pkt.Sent = engine.Of(quanta.Duration(p.rate))
		p.node.addTimer(timer{
			at: w.now + pkt.pauseFor()/2, kind: pauseRepeats, obj: p.index, prio: uint8(prio),
			gen: p.refreshGen[prio],
		})
	}
	return pkt
}

// repeatPause repeats a pause that is still needed.
func (p *Port) repeatPause(prio uint8, gen uint16) {
	if p.refreshGen[prio] == gen {
		p.sendPause(model.Priority(prio), true)
	}
}

// receivePause handles a pause frame: it pauses or resumes this end's sending.
func (p *Port) receivePause(pkt *Packet) {
	w := p.w
	n := w.net
	prio := pkt.Priority
	stop := pkt.pauseFor() > 0
	p.pauseGen[prio]++
	p.PFC[prio].Received++
	if stop {
		p.PausesReceived++
	}
	if n.observer != nil {
		w.observePause(sawPauseFrame, p, prio, stop)
	}
	if p.sw != nil {
		p.sw.pauseReceived(p, pkt)
	}
	if stop && pkt.pauseFor() != engine.Forever {
		p.node.addTimer(timer{
			at: w.now + pkt.pauseFor(), kind: pauseExpires, obj: p.index, prio: uint8(prio),
			gen: p.pauseGen[prio],
		})
	}
	w.pool.put(pkt)
	p.setPaused(prio, stop)
}

// expirePause ends a pause that was not repeated.
func (p *Port) expirePause(prio uint8, gen uint16) {
	if p.pauseGen[prio] == gen {
		p.setPaused(model.Priority(prio), false)
	}
}

func (p *Port) setPaused(prio model.Priority, stop bool) {
	bit := uint16(1) << prio
	if was := p.paused&bit != 0; was == stop {
		return
	}
	w := p.w
	n := w.net
	if stop {
		p.paused |= bit
		p.PFC[prio].Transitions++
		p.pausedSince[prio] = w.now
	} else {
		p.paused &^= bit
		p.PausedFor[prio] += w.now - p.pausedSince[prio]
	}
	if n.observer != nil {
		w.observePause(sawPauseChange, p, prio, stop)
	}
	if !stop {
		if p.host != nil {
			p.host.resumed(p, prio)
		}
		p.kick()
	}
}
