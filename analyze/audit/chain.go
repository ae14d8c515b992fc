package audit

import "math"

// count is what one source counted of the packets of a link, as a share of what the sending
// switch's flowset has.
type count struct {
	point int // where on the link: packets are lost from one point to the next
	ratio
	far     ratio // of what was sent: compared with the receiver's flowset itself
	side    int   // 0: compared with the sender's flowset, 1: with the receiver's
	witness bool  // it is of several sources: none of them is named by it
	source  Source
}

// chain is the counts of one link, ascending by point.
type chain struct {
	counts []count
	link   float64 // how far the receiver's side may be off against the sender's
	least  float64 // the least deviation that matters
}

// tolerance is how far two counts may differ without a fault.
func (c *chain) tolerance(a, b *count) float64 {
	t := a.err + b.err
	if a.side != b.side {
		t += c.link
	}
	return max(t, c.least)
}

// contradict reports whether two counts cannot both be right: the later one has more, or they
// are of one point and differ.
func (c *chain) contradict(a, b *count) bool {
	d, tolerance := b.value-a.value, c.tolerance(a, b)
	if a.point == b.point {
		d = math.Abs(d)
	}
	if a.far.ok && b.point == atReceiver {
		d, tolerance = b.value*(1-a.far.value), max(a.far.err, c.least)
	}
	return d > tolerance
}

// consistent reports whether all counts but one may be right.
func (c *chain) consistent(without int) bool {
	for i := range c.counts {
		for j := i + 1; j < len(c.counts); j++ {
			if i != without && j != without && c.contradict(&c.counts[i], &c.counts[j]) {
				return false
			}
		}
	}
	return true
}

// loss is what was lost on the link by all counts but one.
func (c *chain) loss(without int) float64 {
	least, most := math.Inf(1), math.Inf(-1)
	for i := range c.counts {
		if i != without {
			least, most = min(least, c.counts[i].value), max(most, c.counts[i].value)
		}
	}
	return most - least
}

// expected is what a count would be by its neighbours.
func (c *chain) expected(i int) float64 {
	switch {
	case i == 0:
		return c.counts[1].value
	case i == len(c.counts)-1:
		return c.counts[i-1].value
	}
	return (c.counts[i-1].value + c.counts[i+1].value) / 2
}

// minWitnesses is how many other counts must agree.
const minWitnesses = 2

// judge returns the one source without which the counts are consistent, and by how much it is
// wrong. If that is so for several, it is the one without which nothing was lost: the others
// would need a loss that is just as large as the error, by chance.
func (c *chain) judge() (at int, share float64, ok bool) {
	if len(c.counts) <= minWitnesses || c.consistent(-1) {
		return 0, 0, false
	}
	at = -1
	var candidates, lossless int
	for i := range c.counts {
		if !c.consistent(i) {
			continue
		}
		candidates++
		share := c.counts[i].value - c.expected(i)
		if without := c.loss(i); without <= max(c.least/2, math.Abs(share)/4) {
			lossless++
			at = i
		} else if lossless == 0 {
			at = i
		}
	}
	if candidates != 1 && lossless != 1 || c.counts[at].witness {
		return 0, 0, false
	}
	expected := c.expected(at)
	if expected <= 0 {
		return 0, 0, false
	}
	share = c.counts[at].value/expected - 1
	if far := c.counts[at].far; far.ok && (math.Abs(far.value-1) < c.least || (far.value > 1) != (share > 0)) {
		return 0, 0, false // the receiver's flowset, with no queue in between, agrees with it
	}
	return at, share, true
}
