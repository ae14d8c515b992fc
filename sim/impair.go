package sim

import "slices"

// impairment is one thing that a faulty wire or switch does to packets.
type impairment struct {
	loss   float64 // probability
	reason Reason
	down   bool
	match  func(p *Packet) bool // nil: every packet
}

// impairments are the faults that act at one place. They come and go on their
// own: the end of one leaves the others in force.
type impairments []*impairment

// add puts one more in force and returns what ends it.
func (list *impairments) add(im *impairment) (end func()) {
	*list = append(*list, im)
	return func() {
		*list = slices.DeleteFunc(*list, func(other *impairment) bool { return other == im })
	}
}

// survives tells whether a packet survives; if not it is gone.
func (list impairments) survives(at *Port, p *Packet) bool {
	for _, im := range list {
		switch {
		case im.down:
			at.net.drop(p, at, DropLinkDown)
			return false
		case im.match != nil && !im.match(p):
		case im.loss > 0 && at.node.random() < im.loss:
			at.net.drop(p, at, im.reason)
			return false
		}
	}
	return true
}

// random draws from the node's own numbers, so that what one node does never
// changes the luck of another.
func (nd *node) random() float64 { return float64(nd.rng.Uint64()>>11) / (1 << 53) }
