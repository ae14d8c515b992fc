package sim

import "github.com/weft-telemetry/weft/sim/engine"

// impairment is what a faulty wire or switch does to packets.
type impairment struct {
	loss   float64 // probability
	reason Reason
	down   bool
	match  func(p *Packet) bool // nil: every packet
	delay  engine.Time          // a slow cable; on wires only
}

// pass tells whether a packet survives; if not it is gone.
func (im *impairment) pass(at *Port, p *Packet) bool {
	n := at.net
	if im.down {
		n.drop(p, at, DropLinkDown)
		return false
	}
	if im.match != nil && !im.match(p) {
		return true
	}
	if im.loss > 0 && n.rng.Float64() < im.loss {
		n.drop(p, at, im.reason)
		return false
	}
	return true
}
