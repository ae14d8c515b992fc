// Package inproc is a stream within one process: a buffer of fixed size with a lock
// for each partition, which is read as a whole. It allocates nothing per message.
package inproc

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
)

// Config is the size of a Stream.
type Config struct {
	Partitions int
	BufferSize model.Bytes // of each partition, including headers
}

// DefaultConfig has buffers for some milliseconds of reports, at a million reports
// of 200 bytes per second.
func DefaultConfig() Config { return Config{Partitions: 4, BufferSize: model.MiB} }

// Check returns an error for an invalid configuration.
func (c Config) Check() error {
	if c.Partitions < 1 || c.Partitions > 1<<16 || c.BufferSize < headerSize || c.BufferSize > model.GiB {
		return fmt.Errorf("inproc: %d partitions of %v, want 1 to 65536 of 1KiB to 1GiB", c.Partitions, c.BufferSize)
	}
	return nil
}

// Stream is a stream of messages. It may be used concurrently.
type Stream struct {
	parts []partition
}

// New makes an open stream.
func New(cfg Config) (*Stream, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	s := &Stream{parts: make([]partition, cfg.Partitions)}
	for i := range s.parts {
		s.parts[i].limit = int(cfg.BufferSize)
	}
	return s, nil
}

// Partitions returns the number of partitions.
func (s *Stream) Partitions() int { return len(s.parts) }

// Publish copies a message into the partition of its key. It does not block: the
// error is the reason why a message was lost, and it is counted.
func (s *Stream) Publish(key uint64, m stream.Message) error {
	return s.parts[key%uint64(len(s.parts))].publish(&m)
}

// Subscribe subscribes to some partitions, or all if none is given. Each has one
// reader at a time.
func (s *Stream) Subscribe(partitions ...int) (stream.Subscription, error) {
	if len(partitions) == 0 {
		for i := range s.parts {
			partitions = append(partitions, i)
		}
	}
	sub := &subscription{}
	for _, i := range partitions {
		if i < 0 || i >= len(s.parts) {
			_ = sub.Close()
			return nil, fmt.Errorf("inproc: partition %d, want 0 to %d", i, len(s.parts)-1)
		}
		if !s.parts[i].setReader(true) {
			_ = sub.Close()
			return nil, fmt.Errorf("inproc: partition %d: %w", i, stream.ErrHasReader)
		}
		sub.parts = append(sub.parts, &s.parts[i])
	}
	return sub, nil
}

// Close closes the stream: buffered messages can be read, new ones are refused.
func (s *Stream) Close() error {
	for i := range s.parts {
		s.parts[i].close()
	}
	return nil
}

// Stats sums the counters of all partitions.
func (s *Stream) Stats() (sum stream.Stats) {
	for i := range s.parts {
		p := s.parts[i].counts()
		sum.Published += p.Published
		sum.Delivered += p.Delivered
		sum.Waiting += p.Waiting
		sum.Full += p.Full
		sum.TooLarge += p.TooLarge
		sum.Closed += p.Closed
	}
	return sum
}

// subscription reads partitions in turn.
type subscription struct{ parts []*partition }

// Poll implements stream.Subscription.
func (s *subscription) Poll(take func(m stream.Message)) (n int, err error) {
	ended := true
	for _, p := range s.parts {
		got, over := p.poll(take)
		n += got
		ended = ended && over
	}
	if ended {
		err = stream.ErrEnded
	}
	return n, err
}

// Close implements stream.Subscription.
func (s *subscription) Close() error {
	for _, p := range s.parts {
		p.setReader(false)
	}
	s.parts = nil
	return nil
}
