package sim

// impairment is what a faulty wire or switch does to packets.
type impairment struct {
	loss   float64 // probability
	reason Reason
	down   bool
	match  func(p *Packet) bool // nil: every packet
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
	if im.loss > 0 && at.node.random() < im.loss {
		n.drop(p, at, im.reason)
		return false
	}
	return true
}

// random draws from the node's own numbers, so that what one node does never
// changes the luck of another.
func (nd *node) random() float64 { return float64(nd.rng.Uint64()>>11) / (1 << 53) }
