package inproc

import (
	"encoding/binary"
	"sync"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
)

// partition is a buffer of messages, each after its header, in the order of
// publishing. A reader takes the whole buffer, and leaves one of the same size for
// the next messages: the lock is held for no longer than a copy of one message.
type partition struct {
	mu     sync.Mutex
	limit  int
	buffer []byte // messages that wait, len is at most room
	count  int    // of them
	closed bool
	read   bool   // has a reader
	spare  []byte // the buffer that was read before
	stats  stream.Stats
	_      [64]byte // partitions share no cache line
}

// headerSize is the length of time, kind and length.
const headerSize = 8 + 4 + 4

// publish appends a message to the buffer.
func (p *partition) publish(m *stream.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Published++
	need := headerSize + len(m.Data)
	switch {
	case p.closed:
		p.stats.Closed++
		return stream.ErrClosed
	case need > p.limit:
		p.stats.TooLarge++
		return stream.ErrTooLarge
	case len(p.buffer)+need > p.limit:
		p.stats.Full++
		return stream.ErrFull
	}
	if p.buffer == nil {
		p.buffer = make([]byte, 0, p.limit) // allocated at the first use
	}
	b := binary.LittleEndian.AppendUint64(p.buffer, uint64(m.At))
	b = binary.LittleEndian.AppendUint32(b, m.Kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Data)))
	p.buffer = append(b, m.Data...)
	p.count++
	return nil
}

// poll calls take with every buffered message, without the lock. It reports whether
// there will be no more.
func (p *partition) poll(take func(m stream.Message)) (n int, over bool) {
	p.mu.Lock()
	run := p.buffer
	n, over = p.count, p.closed
	if n > 0 {
		p.buffer, p.spare, p.count = p.spare, nil, 0
		p.stats.Delivered += uint64(n)
	}
	p.mu.Unlock()
	if n == 0 {
		return 0, over
	}
	for rest := run; len(rest) > 0; {
		size := binary.LittleEndian.Uint32(rest[12:])
		m := stream.Message{
			At: model.Time(binary.LittleEndian.Uint64(rest)), Kind: binary.LittleEndian.Uint32(rest[8:]),
			Data: rest[headerSize : headerSize+size : headerSize+size],
		}
		rest = rest[headerSize+size:]
		take(m)
	}
	p.mu.Lock()
	p.spare = run[:0]
	p.mu.Unlock()
	return n, over
}

// setReader registers or removes the reader. It reports whether it could.
func (p *partition) setReader(take bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if take && p.read {
		return false
	}
	p.read = take
	return true
}

func (p *partition) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

func (p *partition) counts() stream.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Waiting = uint64(p.count)
	return s
}
