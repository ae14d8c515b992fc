package inproc

import (
	"sync"

	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/frame"
)

// partition is a buffer of messages in the order of publishing. A reader takes the
// whole buffer as a run, and leaves one of the same size for the next messages: the
// lock is held for no longer than a copy of one message. Runs are kept until all their
// messages are acknowledged. At most limit bytes wait, and at most limit are
// unacknowledged, or one run.
type partition struct {
	mu     sync.Mutex
	limit  int
	buffer []byte // messages that wait
	count  int    // of them
	closed bool
	reader *subscription
	held   []run  // read, not acknowledged, oldest first
	seq    uint64 // of the last message that was read
	spare  []byte // a buffer that was read before
	recent recentIDs
	stats  stream.Stats
	_      [64]byte // partitions share no cache line
}

// run is a buffer of messages that were read together.
type run struct {
	data  []byte
	first uint64 // the position of its first message
	count int
}

// publish appends a message to the buffer.
func (p *partition) publish(m *stream.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Published++
	need := frame.Size(m)
	switch {
	case p.closed:
		p.stats.Closed++
		return stream.ErrClosed
	case need > p.limit:
		p.stats.TooLarge++
		return stream.ErrTooLarge
	case m.ID != 0 && p.recent.has(m.ID):
		p.stats.Duplicate++
		return nil
	case len(p.buffer)+need > p.limit:
		p.stats.Full++
		return stream.ErrFull
	}
	if m.ID != 0 {
		p.recent.add(m.ID)
	}
	if p.buffer == nil {
		p.buffer = make([]byte, 0, p.limit) // allocated at the first use
	}
	p.buffer = frame.AppendTo(p.buffer, m)
	if p.count++; p.count == 1 && p.reader != nil {
		p.reader.wake()
	}
	return nil
}

// poll calls take with every buffered message, without the lock. It reports whether
// there will be no more.
func (p *partition) poll(by *subscription, index int, take func(m stream.Message)) (n int, over bool, err error) {
	p.mu.Lock()
	if p.reader != by {
		p.mu.Unlock()
		return 0, false, stream.ErrTakenOver
	}
	if p.count == 0 || len(p.held) > 0 && p.heldBytes()+len(p.buffer) > p.limit {
		over = p.closed && p.count == 0
		p.mu.Unlock()
		return 0, over, nil
	}
	r := run{p.buffer, p.seq + 1, p.count}
	p.held = append(p.held, r)
	p.buffer, p.spare, p.count = p.spare, nil, 0
	p.seq += uint64(r.count)
	p.stats.Delivered += uint64(r.count)
	p.stats.Read += uint64(r.count)
	over = p.closed
	p.mu.Unlock()
	at := stream.Position{Partition: index, Seq: r.first}
	for rest := r.data; len(rest) > 0; at.Seq++ {
		var m stream.Message
		used, err := frame.Parse(&m, rest)
		if err != nil {
			panic(err) // publish wrote it
		}
		m.Position = at
		rest = rest[used:]
		take(m)
	}
	return r.count, over, nil
}

func (p *partition) heldBytes() (n int) {
	for i := range p.held {
		n += len(p.held[i].data)
	}
	return n
}

// ack acknowledges messages up to a position. A run that is acknowledged in part stays.
func (p *partition) ack(by *subscription, through uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reader != by {
		return stream.ErrTakenOver
	}
	done := 0
	for i := range p.held {
		r := &p.held[i]
		if r.first > through {
			break
		}
		n := min(uint64(r.count), through-r.first+1)
		p.stats.Acknowledged += n
		if r.count -= int(n); r.count > 0 {
			r.skip(n)
			break
		}
		p.spare = r.data[:0]
		done++
	}
	p.held = p.held[:copy(p.held, p.held[done:])]
	if p.count > 0 { // it may have waited for this
		by.wake()
	}
	return nil
}

// skip removes the first messages of a run. Its memory is freed with the others'.
func (r *run) skip(n uint64) {
	for range n {
		var m stream.Message
		used, err := frame.Parse(&m, r.data)
		if err != nil {
			panic(err)
		}
		r.data = r.data[used:]
	}
	r.first += n
}

// setReader registers a reader. What the last one did not acknowledge waits again.
func (p *partition) setReader(s *subscription, force bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reader != nil && !force {
		return false
	}
	p.unread()
	if p.reader != nil {
		p.reader.wake() // to hear of it
	}
	p.reader = s
	s.wake()
	return true
}

// removeReader ends a reader's use.
func (p *partition) removeReader(s *subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reader == s {
		p.unread()
		p.reader = nil
	}
}

// unread puts runs that were not acknowledged back before what waits. The lock is held.
func (p *partition) unread() {
	if len(p.held) == 0 {
		return
	}
	again := make([]byte, 0, max(p.limit, p.heldBytes()+len(p.buffer)))
	for _, r := range p.held {
		again = append(again, r.data...)
		p.count += r.count
		p.stats.Delivered -= uint64(r.count)
		p.seq -= uint64(r.count)
	}
	p.buffer, p.held = append(again, p.buffer...), nil
}

func (p *partition) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.reader != nil {
		p.reader.wake()
	}
}

func (p *partition) counts() stream.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Waiting = uint64(p.count)
	return s
}
