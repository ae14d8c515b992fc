package sim

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// impairment is one fault of a link or switch that acts on packets.
type impairment struct {
	loss   float64 // probability
	reason Reason
	down   bool
	match  func(p *Packet) bool // nil: every packet

	// Of a link that is slow.
	rate        model.Rate  // that it carries; 0: its own
	delay       engine.Time // more than its own
	lastArrival engine.Time // of a packet that was delayed: links do not reorder
}

// impairments are the faults of one link or switch. They start and end
// independently: the end of one leaves the others in force.
type impairments []*impairment

// add activates a fault and returns a function that ends it.
func (list *impairments) add(im *impairment) (end func()) {
	*list = append(*list, im)
	return func() {
		*list = slices.DeleteFunc(*list, func(other *impairment) bool { return other == im })
	}
}

// survives reports whether a packet survives; if not, it has been dropped.
func (list impairments) survives(at *Port, p *Packet) bool {
	for _, im := range list {
		switch {
		case im.down:
			at.w.net.drop(p, at, DropLinkDown)
			return false
		case im.match != nil && !im.match(p):
		case im.loss > 0 && at.node.random() < im.loss:
			at.w.net.drop(p, at, im.reason)
			return false
		}
	}
	return true
}

// random draws from the node's own generator, so that one node never changes
// the random numbers of another.
func (nd *node) random() float64 { return float64(nd.rng.Uint64()>>11) / (1 << 53) }
