package engine

const (
	chunk   = 32
	sortMax = 24
)

// bucket is a list of chunks that hold events in the order they came.
type bucket struct {
	head   int32 // first chunk
	end    int32 // cell after the last event; a multiple of chunk when the last chunk is full
	chunks int32
}

// fill is the number of events in the last chunk.
func (b bucket) fill() int { return int(b.end-1)%chunk + 1 }

// len is the number of events.
func (b bucket) len() int { return int(b.chunks-1)*chunk + b.fill() }

// last is the last chunk.
func (b bucket) last() int32 { return (b.end - 1) / chunk }

// store keeps the events of all buckets, in chunks that lie in one slice.
type store[E any] struct {
	cells []entry[E]
	next  []int32 // per chunk, the one that follows in its list
	free  int32   // first free chunk; 0 for none, as chunk 0 is never used
}

// cell returns the place for one more event at a time the rung spans.
func (s *store[E]) cell(r *rung, at Time) *entry[E] {
	slot := uint64(at) >> (r.shift & 63) & uint64(len(r.buckets)-1)
	b := &r.buckets[slot]
	end := b.end
	if end%chunk == 0 {
		end = s.extend(r, slot)
	}
	b.end = end + 1
	return &s.cells[end]
}

// extend adds a chunk to a bucket and returns the chunk's first cell.
func (s *store[E]) extend(r *rung, slot uint64) int32 {
	c := s.free
	if c == 0 {
		c = s.grow()
	}
	s.free = s.next[c]
	b := &r.buckets[slot]
	if b.chunks == 0 {
		b.head = c
		r.words[slot/64] |= 1 << (slot % 64)
		r.groups[slot/4096] |= 1 << (slot / 64 % 64)
		r.live++
	} else {
		s.next[b.last()] = c
	}
	b.chunks++
	return c * chunk
}

// grow adds a chunk to the free list, which is empty.
func (s *store[E]) grow() int32 {
	var fresh [chunk]entry[E]
	if len(s.next) == 0 {
		s.next = append(s.next, 0)
		s.cells = append(s.cells, fresh[:]...)
	}
	s.free = int32(len(s.next))
	s.next = append(s.next, 0)
	s.cells = append(s.cells, fresh[:]...)
	return s.free
}

// release gives the chunks of a bucket back.
func (s *store[E]) release(b bucket) {
	s.next[b.last()] = s.free
	s.free = b.head
}

// span returns the first n cells of a chunk.
func (s *store[E]) span(c int32, n int) []entry[E] {
	return s.cells[int(c)*chunk:][:n:n]
}

// spread distributes a bucket over a rung, in order.
func (s *store[E]) spread(r *rung, b bucket) {
	c := b.head
	for n := b.len(); n > 0; n -= chunk {
		for i := range min(n, chunk) {
			// cell may move the cells: name the source anew.
			to := s.cell(r, s.cells[int(c)*chunk+i].at)
			*to = s.cells[int(c)*chunk+i]
		}
		following := s.next[c]
		s.next[c] = s.free
		s.free = c
		c = following
	}
}

// inOrder appends a bucket of events of one time to near.
func (s *store[E]) inOrder(near []entry[E], b bucket) []entry[E] {
	c := b.head
	for n := b.len(); n > 0; n -= chunk {
		near = append(near, s.span(c, min(n, chunk))...)
		c = s.next[c]
	}
	s.release(b)
	return near
}

// earliest returns the earliest time in a bucket.
func (s *store[E]) earliest(b bucket) Time {
	at := Forever
	c := b.head
	for n := b.len(); n > 0; n -= chunk {
		for _, e := range s.span(c, min(n, chunk)) {
			at = min(at, e.at)
		}
		c = s.next[c]
	}
	return at
}

// sorted fills near with a bucket of at most sortMax events.
func (s *store[E]) sorted(near []entry[E], b bucket) []entry[E] {
	events := s.span(b.head, b.fill())
	s.release(b)
	if cap(near) < sortMax {
		near = make([]entry[E], 0, 4*sortMax)
	}
	near = near[:len(events)]
	if len(events) == 1 {
		near[0] = events[0]
		return near
	}
	// An event's rank is how many come before it. Counting takes more
	// comparisons than sorting, but none that a processor must guess.
	var at [chunk]Time
	var rank [chunk]int32
	for i := range events {
		t := events[i].at
		before := int32(i)
		for j := range at[:i] {
			var later int32
			if at[j] > t {
				later = 1
			}
			rank[j] += later
			before -= later
		}
		at[i%chunk] = t
		rank[i%chunk] = before
	}
	for i := range events {
		near[rank[i%chunk]] = events[i]
	}
	return near
}
