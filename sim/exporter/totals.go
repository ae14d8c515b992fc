package exporter

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/sim"
)

// classFields are those of every class. A simulated switch has no PFC watchdog.
const classFields = portstat.HasRxPauses | portstat.HasTxPauses | portstat.HasRxTransitions | portstat.HasRxPaused |
	portstat.HasTxPaused | portstat.HasECNMarked | portstat.HasQueueWatermark | portstat.HasPGWatermark | portstat.HasHeadroomWatermark

// Totals sets c to what a port has counted since the start, without watermarks.
//
// What a fault hides from a real switch is hidden here, too: a packet that a
// link or switch loses silently is in no counter. A corrupted frame is an error
// of the port that receives it.
func (e *Exporter) Totals(port model.PortID, c *portstat.Counters) {
	p, own := e.sw.Ports()[port-1], &e.ports[port-1]
	*c = portstat.Counters{
		Has: portstat.HasBytes | portstat.HasPackets | portstat.HasDiscards | portstat.HasErrors | portstat.HasFCSErrors,
		DropReasons: portstat.ReasonSet(0).With(portstat.NoBuffer).With(portstat.NoRoute).With(portstat.BlackholeRoute).
			With(portstat.TTLExpired).With(portstat.LinkDown),
	}
	for i := range c.Class {
		k, prio := &c.Class[i], model.Priority(i)
		k.Has = classFields
		k.RxPauses, k.TxPauses = uint64(p.PFC[i].Received), uint64(p.PFC[i].Sent)
		k.RxTransitions = uint64(p.PFC[i].Transitions)
		k.RxPaused, k.TxPaused = p.PausedTime(prio).Duration(), p.Peer().PausedTime(prio).Duration()
		k.ECNMarked = uint64(p.Marked[i])
	}
	sent := p.Sent()
	c.TxPackets, c.TxBytes = sent[sim.TxPackets], sent[sim.TxBytes]
	c.RxPackets, c.RxBytes = p.Received(own.rxPackets, own.rxBytes)
	c.FCSErrors = uint64(p.Peer().Drops[sim.DropCorrupt])
	c.RxErrors = c.FCSErrors
	for why, n := range p.Drops {
		r := reasonOf(sim.Reason(why))
		switch sim.Reason(why) {
		case sim.DropBuffer, sim.DropLinkDown:
			c.TxDiscards += uint64(n)
			c.Drops[r] += uint64(n)
		case sim.DropTTL, sim.DropNoRoute, sim.DropBlackhole:
			c.RxDiscards += uint64(n)
			c.Drops[r] += uint64(n)
		}
	}
}
