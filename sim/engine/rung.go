package engine

import "math/bits"

const (
	timeBits = 63 // of a Time that is not negative

	// The coarse rungs have shifts 60, 48, 36 and 24.
	topShift  = 60
	gridShift = 24
	gridBits  = 12

	// A fitted rung aims at buckets of occupancy to 2*occupancy events. Fewer
	// make the change of buckets dear, more the sorting: of 3, 4, 6 and 8, this
	// was the best or within 5 % of it at every size.
	occupancy = 8

	// leafBits limits the buckets of a rung to what stays in the processor's
	// second cache. Events that ask for more get two rungs. A fabric with
	// 10,000 events takes 38 ns with a limit of 12 or 13, 25 with 15, 31 with 16.
	leafBits = 15

	// fewBits is the least that makes a rung worth its while.
	fewBits = 3

	// maxRungs exceeds the number there can be, 4 of the grid and
	// gridShift/fewBits fitted, and is a power of two.
	maxRungs = 16
)

// rung is a row of buckets that together span one bucket of the rung above.
type rung struct {
	buckets []bucket // a power of two of them, each 1<<shift ps wide
	shift   uint8
	top     uint8    // shift of the rung above
	live    int      // how many buckets hold events
	words   []uint64 // a bit for each bucket that holds events
	groups  []uint64 // a bit for each word that is not zero
}

// slot returns the bucket of a time within the rung's span.
func (r *rung) slot(at Time) uint64 {
	return uint64(at) >> (r.shift % 64) & uint64(len(r.buckets)-1)
}

// start returns where a bucket starts, given any time within the rung's span.
func (r *rung) start(within Time, slot uint64) Time {
	return within>>(r.top%64)<<(r.top%64) | Time(slot)<<(r.shift%64)
}

// lowest returns the first bucket that holds events; there must be one.
func (r *rung) lowest() uint64 {
	g := 0
	for r.groups[g] == 0 {
		g++
	}
	w := g*64 + bits.TrailingZeros64(r.groups[g])
	return uint64(w*64 + bits.TrailingZeros64(r.words[w]))
}

// mark notes that a bucket now holds events.
func (r *rung) mark(slot uint64) {
	r.words[slot/64] |= 1 << (slot % 64)
	r.groups[slot/4096] |= 1 << (slot / 64 % 64)
	r.live++
}

// take empties a bucket and returns its events.
func (r *rung) take(slot uint64) bucket {
	w := slot / 64
	r.words[w] &^= 1 << (slot % 64)
	if r.words[w] == 0 {
		r.groups[w/64] &^= 1 << (w % 64)
	}
	r.live--
	b := r.buckets[slot]
	r.buckets[slot] = bucket{}
	return b
}

// addRung adds a rung below the finest.
func (q *Queue[E]) addRung(shift, top uint8) *rung {
	q.depth++
	r := &q.rungs[q.depth]
	n := 1 << (top - shift)
	if cap(r.buckets) < n {
		r.buckets = make([]bucket, n)
		r.words = make([]uint64, (n+63)/64)
		r.groups = make([]uint64, (n+4095)/4096)
	}
	r.buckets = r.buckets[:n]
	r.shift, r.top = shift, top
	for i := shift; i < top; i++ {
		q.home[i+1] = uint8(q.depth)
	}
	return r
}

// addFittedRung adds the next rung of the grid, or below the grid one that is
// fitted to n events and to the rate of pops.
func (q *Queue[E]) addFittedRung(n int) *rung {
	top := q.rungs[q.depth].shift
	if top > gridShift {
		return q.addRung(top-gridBits, top)
	}
	if top == gridShift {
		q.takeRate()
	}
	width := max(bits.Len(uint(n/occupancy)), int(top)-int(q.rateShift), fewBits)
	if width > leafBits {
		width = gridBits
	}
	return q.addRung(top-uint8(min(width, int(top))), top)
}

// takeRate measures the rate of pops since the last time, once there have been
// enough of them.
func (q *Queue[E]) takeRate() {
	if buckets := (q.popped - q.markPopped) / occupancy; buckets > 0 {
		width := uint64(q.last-q.markTime) / uint64(buckets)
		q.rateShift = uint8(bits.Len64(width))
		q.markTime, q.markPopped = q.last, q.popped
	}
}

// dropRung removes the finest rung, which is empty; near takes over its span.
func (q *Queue[E]) dropRung() {
	r := &q.rungs[q.depth]
	clear(q.home[r.shift+1 : r.top+1])
	q.depth--
}
