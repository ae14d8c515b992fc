package engine

import "math/bits"

const (
	timeBits = 63 // bits of a Time

	// Coarse rungs have fixed shifts, topShift, topShift-gridBits … gridShift;
	// finer ones are fitted to the events.
	topShift  = 60
	gridBits  = 12
	gridShift = 24

	occupancy = 8
	leafBits  = 15
	midBits   = 13
	fewBits   = 3

	// maxRungs is a power of two, so that an index needs no check: one is
	// unused, four are fixed and gridShift/fewBits fitted at most.
	maxRungs = 16
)

// rung is a row of buckets that together span one bucket of the rung above.
type rung struct {
	buckets []bucket // a power of two of them, each 1<<shift ps wide
	shift   uint8
	top     uint8    // shift of the rung above
	live    int      // buckets that hold events
	words   []uint64 // a bit for each bucket that holds events
	groups  []uint64 // a bit for each word that is not zero
}

// descend adds a rung below the finest, fitted to n events, and returns it; nil
// when buckets are one picosecond wide already.
func (q *Queue[E]) descend(n int) *rung {
	top := int(q.rungs[q.depth].shift)
	if top == 0 {
		return nil
	}
	if top > gridShift {
		return q.addRung(uint8(top-gridBits), uint8(top))
	}
	if top == gridShift {
		q.measure()
	}
	shift := min(top-bits.Len(uint(n/occupancy)), int(q.rateShift), top-fewBits)
	if shift < top-leafBits {
		shift = top - midBits
	}
	return q.addRung(uint8(max(shift, 0)), uint8(top))
}

// measure sets the bucket width that the events popped since the last
// measurement ask for.
func (q *Queue[E]) measure() {
	if n := q.popped - q.markPopped; n > 0 {
		width := uint64(q.last-q.markTime) / uint64(n) * occupancy
		q.rateShift = uint8(bits.Len64(width))
	}
	q.markTime, q.markPopped = q.last, q.popped
}

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

// dropRung removes the finest rung; near takes over its span.
func (q *Queue[E]) dropRung() {
	r := &q.rungs[q.depth]
	clear(q.home[r.shift+1 : r.top+1])
	q.depth--
}

// start returns the time at which a bucket starts, given any time that the
// rung spans.
func (r *rung) start(within Time, slot int) Time {
	return within>>(r.top&63)<<(r.top&63) | Time(slot)<<(r.shift&63)
}

// lowest returns the first bucket that holds events; there must be one. None
// lies before base.
func (r *rung) lowest(base Time) int {
	w := int(uint64(base)>>(r.shift&63)) & (len(r.buckets) - 1) / 64
	if r.words[w] == 0 {
		g := w / 64
		for r.groups[g] == 0 {
			g++
		}
		w = g*64 + bits.TrailingZeros64(r.groups[g])
	}
	return w*64 + bits.TrailingZeros64(r.words[w])
}

// take removes and returns a bucket's content.
func (r *rung) take(slot int) bucket {
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
