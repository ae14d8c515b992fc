package engine

const (
	// chunk is how many events lie side by side. A large queue waits for memory
	// less often with long chunks, a small one does not mind: a fabric with a
	// million events takes 85, 65, 45 and 30 ns with chunks of 4, 8, 16 and 32,
	// with a thousand 29, 26, 25 and 23 ns.
	chunk = 32

	// sortMax is how many events are sorted rather than spread. They lie in one
	// chunk. 16 to 32 measure alike.
	sortMax = 24
)

// bucket is a list of chunks that hold events in the order they came. The zero
// bucket is empty.
type bucket struct {
	head   int32 // first chunk
	end    int32 // cell after the last event; a multiple of chunk when that chunk is full
	chunks int32
}

// fill returns the number of events in the last chunk.
func (b bucket) fill() int { return int(b.end-1)%chunk + 1 }

// len returns the number of events.
func (b bucket) len() int { return int(b.chunks-1)*chunk + b.fill() }

// tail returns the last chunk.
func (b bucket) tail() int32 { return (b.end - 1) / chunk }

// store holds the events of all buckets. Chunks are parts of one slice and
// linked by number: to the garbage collector they are one object.
type store[E any] struct {
	cells []entry[E]
	next  []int32 // for each chunk, the one after it in its bucket or in the free list
	free  int32   // first free chunk, the newest first; chunk 0 is never used and means none
}

// cell returns the place for one more event on a rung.
func (s *store[E]) cell(r *rung, at Time) *entry[E] {
	slot := r.slot(at)
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
	if s.free == 0 {
		s.grow()
	}
	c := s.free
	s.free = s.next[c]
	b := &r.buckets[slot]
	if b.chunks == 0 {
		b.head = c
		r.mark(slot)
	} else {
		s.next[b.tail()] = c
	}
	b.chunks++
	return c * chunk
}

// grow adds a free chunk.
func (s *store[E]) grow() {
	var fresh [chunk]entry[E]
	if len(s.next) == 0 {
		s.next = append(s.next, 0)
		s.cells = append(s.cells, fresh[:]...)
	}
	s.free = int32(len(s.next))
	s.next = append(s.next, 0)
	s.cells = append(s.cells, fresh[:]...)
}

// release frees the chunks of a bucket.
func (s *store[E]) release(b bucket) {
	s.next[b.tail()] = s.free
	s.free = b.head
}

// events returns the events in a chunk when n are left from its first on.
func (s *store[E]) events(c int32, n int) []entry[E] {
	return s.cells[int(c)*chunk:][:min(n, chunk)]
}

// spread moves a bucket's events to a rung, in order. Each chunk is free as
// soon as it is read, and is written again while it is still in the cache.
func (s *store[E]) spread(r *rung, b bucket) {
	c := b.head
	for n := b.len(); n > 0; n -= chunk {
		for i := range min(n, chunk) {
			from := int(c)*chunk + i
			to := s.cell(r, s.cells[from].at) // may move the cells
			*to = s.cells[from]
		}
		after := s.next[c]
		s.next[c] = s.free
		s.free = c
		c = after
	}
}

// oneTime tells whether all events of a bucket have the same time.
func (s *store[E]) oneTime(b bucket) bool {
	c := b.head
	at := s.cells[int(c)*chunk].at
	for n := b.len(); n > 0; n -= chunk {
		events := s.events(c, n)
		for i := range events {
			if events[i].at != at {
				return false
			}
		}
		c = s.next[c]
	}
	return true
}

// inOrder appends the events of a bucket to near.
func (s *store[E]) inOrder(near []entry[E], b bucket) []entry[E] {
	c := b.head
	for n := b.len(); n > 0; n -= chunk {
		near = append(near, s.events(c, n)...)
		c = s.next[c]
	}
	s.release(b)
	return near
}

// earliest returns the earliest time in a bucket.
func (s *store[E]) earliest(b bucket) Time {
	at, c := Forever, b.head
	for n := b.len(); n > 0; n -= chunk {
		events := s.events(c, n)
		for i := range events {
			at = min(at, events[i].at)
		}
		c = s.next[c]
	}
	return at
}

// sorted puts the events of a bucket of up to sortMax into near, which is
// empty, by time and then by age.
func (s *store[E]) sorted(near []entry[E], b bucket) []entry[E] {
	events := s.events(b.head, b.fill())
	s.release(b)
	if cap(near) < len(events) {
		near = make([]entry[E], 4*sortMax)
	}
	near = near[:len(events)]
	if len(events) == 1 {
		near[0] = events[0]
		return near
	}
	// An event's place is the number of events before it. Counting makes more
	// comparisons than sorting by insertion, but none that the processor has
	// to guess: 8 ns an event rather than 16, of twelve in random order.
	var at [chunk]Time
	var place [chunk]int32
	for i := range events {
		t, before := events[i].at, int32(i)
		for j := range at[:i] {
			var later int32
			if at[j] > t {
				later = 1
			}
			place[j] += later
			before -= later
		}
		at[i%chunk], place[i%chunk] = t, before
	}
	for i := range events {
		near[place[i%chunk]] = events[i]
	}
	return near
}
