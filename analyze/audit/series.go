package audit

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// amount is packets and bytes.
type amount [2]uint64

const (
	packets = iota
	bytes
	quantities
)

func (a *amount) add(b amount) { a[packets], a[bytes] = a[packets]+b[packets], a[bytes]+b[bytes] }

// count adds what a switch counted of a flow. An array made of it first would be in memory.
func (a *amount) count(s *paths.Sighting) {
	a[packets] += s.Packets
	a[bytes] += s.Bytes
}

// minus returns a - b, which is not above a.
func (a amount) minus(b amount) amount { return amount{a[packets] - b[packets], a[bytes] - b[bytes]} }

// block is what two sources counted in the same span.
type block struct {
	x, ref [quantities]float64
	own    float64 // packets of x that are no count of others, but those of ref
	slack  float64 // packets that one of them may lack without a fault
	from   model.Time
}

func (b *block) add(c *block) {
	for q := range quantities {
		b.x[q], b.ref[q] = b.x[q]+c.x[q], b.ref[q]+c.ref[q]
	}
	b.own, b.slack = b.own+c.own, b.slack+c.slack
}

// series is the ratio of what two sources counted, over the last blocks.
type series struct {
	ring  [maxBlocks]block
	count uint64 // of blocks that ended
	now   block
	last  model.Time // end of what was added last
}

// add adds what x and ref counted from one instant to another.
func (s *series) add(cfg *Config, from, to model.Time, b block) {
	if gap := from.Sub(s.last); s.last == 0 || gap < 0 || gap > time.Duration(cfg.Blocks)*cfg.Block {
		*s = series{now: block{from: from}} // of another time
	}
	s.now.add(&b)
	if s.last = to; to.Sub(s.now.from) >= cfg.Block {
		s.ring[s.count%maxBlocks] = s.now
		s.count++
		s.now = block{from: to}
	}
}

// ratio is x of ref, and how far it may be off.
type ratio struct {
	value, err float64
	ok         bool // the window suffices
}

// maxOwn is the share of a sum that may not be a count of others.
const maxOwn = 0.25

// ratio compares the blocks of a window. The difference of two counts of the same packets is
// what was between them at the ends of a block, and what is lost or wrong. A queue that fills
// or empties changes few blocks, a share that is wrong all of them and their sum: the ratio is
// that of the sums or the median of the blocks, whichever is nearer to 1, and the spread of the
// blocks is how far it may be off.
func (s *series) ratio(cfg *Config, q int, now model.Time) (r ratio) {
	window := time.Duration(cfg.Blocks) * cfg.Block
	if s.count < uint64(cfg.Blocks) || now.Sub(s.last) > 4*cfg.Block {
		return r
	}
	var sum block
	var all [maxBlocks]float64
	n := 0
	for i := s.count - uint64(cfg.Blocks); i < s.count; i++ {
		b := &s.ring[i%maxBlocks]
		if now.Sub(b.from) > 2*window || b.ref[packets] < float64(cfg.MinPackets)/float64(2*cfg.Blocks) || b.ref[q] == 0 {
			continue // of another time, or nearly idle
		}
		sum.add(b)
		all[n] = b.x[q] / b.ref[q]
		n++
	}
	if n < cfg.Blocks-1 || sum.ref[packets] < float64(cfg.MinPackets) || sum.own > maxOwn*sum.ref[packets] {
		return r
	}
	ratios := all[:n]
	slices.Sort(ratios)
	r.value = nearerToOne((ratios[(n-1)/2]+ratios[n/2])/2, sum.x[q]/sum.ref[q])
	// Between the second and the last but one: one block at each end may be of a change.
	r.err = (ratios[n-2]-ratios[1])/2 + (minInFlight+sum.slack)/sum.ref[packets]
	r.ok = true
	return r
}

// nearerToOne returns the lesser of two deviations from 1, or 1 if they have different
// directions.
func nearerToOne(a, b float64) float64 {
	if a > b {
		a, b = b, a
	}
	return min(max(1, a), b)
}

// minInFlight is packets that may be between two points without a trace in the blocks.
const minInFlight = 4
