// Package inproc is a stream within one process: a buffer of fixed size with a lock
// for each partition, which is read as a whole. It allocates nothing per message.
package inproc

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/frame"
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
	if c.Partitions < 1 || c.Partitions > 1<<16 || c.BufferSize < frame.HeaderSize || c.BufferSize > model.GiB {
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

// Flush returns nil: what Publish accepted is as safe as it gets in one process.
func (s *Stream) Flush(context.Context) error { return nil }

// Subscribe subscribes to some partitions, or all if none is given. Each has one
// reader at a time.
func (s *Stream) Subscribe(partitions ...int) (stream.Subscription, error) {
	return s.subscribe(false, partitions)
}

// Takeover subscribes to partitions that may have a reader, which gets ErrTakenOver
// from then on. What it has not acknowledged is read again.
func (s *Stream) Takeover(partitions ...int) (stream.Subscription, error) {
	return s.subscribe(true, partitions)
}

func (s *Stream) subscribe(force bool, partitions []int) (stream.Subscription, error) {
	if len(partitions) == 0 {
		for i := range s.parts {
			partitions = append(partitions, i)
		}
	}
	sub := &subscription{stream: s, arrived: make(chan struct{}, 1)}
	for _, i := range partitions {
		if i < 0 || i >= len(s.parts) {
			_ = sub.Close()
			return nil, fmt.Errorf("inproc: partition %d, want 0 to %d", i, len(s.parts)-1)
		}
		if !s.parts[i].setReader(sub, force) {
			_ = sub.Close()
			return nil, fmt.Errorf("inproc: partition %d: %w", i, stream.ErrHasReader)
		}
		sub.parts = append(sub.parts, i)
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
		sum.Duplicate += p.Duplicate
		sum.Read += p.Read
		sum.Acknowledged += p.Acknowledged
	}
	return sum
}

// subscription reads partitions in turn.
type subscription struct {
	stream  *Stream
	parts   []int
	arrived chan struct{} // has one token
}

// Arrived implements stream.Subscription.
func (s *subscription) Arrived() <-chan struct{} { return s.arrived }

func (s *subscription) wake() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// Poll implements stream.Subscription.
func (s *subscription) Poll(take func(m stream.Message)) (n int, err error) {
	ended := true
	for _, i := range s.parts {
		got, over, err := s.stream.parts[i].poll(s, i, take)
		n += got
		if err != nil {
			return n, fmt.Errorf("inproc: partition %d: %w", i, err)
		}
		ended = ended && over
	}
	if ended {
		err = stream.ErrEnded
	}
	return n, err
}

// Ack implements stream.Subscription.
func (s *subscription) Ack(through ...stream.Position) error {
	if len(through) == 0 {
		for _, i := range s.parts {
			if err := s.stream.parts[i].ack(s, math.MaxUint64); err != nil {
				return fmt.Errorf("inproc: partition %d: %w", i, err)
			}
		}
	}
	for _, at := range through {
		if !slices.Contains(s.parts, at.Partition) {
			return fmt.Errorf("inproc: acknowledgement of partition %d, want one of %v", at.Partition, s.parts)
		}
		if err := s.stream.parts[at.Partition].ack(s, at.Seq); err != nil {
			return fmt.Errorf("inproc: partition %d: %w", at.Partition, err)
		}
	}
	return nil
}

// Close implements stream.Subscription.
func (s *subscription) Close() error {
	for _, i := range s.parts {
		s.stream.parts[i].removeReader(s)
	}
	s.parts = nil
	return nil
}
