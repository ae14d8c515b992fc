package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/stream"
)

// Subscribe subscribes to some partitions, or all if none is given. Each has one
// reader at a time.
func (s *Stream) Subscribe(partitions ...int) (stream.Subscription, error) {
	return s.subscribe(false, partitions)
}

// Takeover subscribes to partitions that may have a reader, which gets ErrTakenOver
// from then on. What it has not acknowledged is read again. Its caller holds the leases
// of the partitions.
func (s *Stream) Takeover(partitions ...int) (stream.Subscription, error) {
	return s.subscribe(true, partitions)
}

func (s *Stream) subscribe(force bool, partitions []int) (stream.Subscription, error) {
	if len(partitions) == 0 {
		for i := range s.boxes {
			partitions = append(partitions, i)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	sub := &subscription{arrived: make(chan struct{}, 1)}
	for _, i := range partitions {
		if i < 0 || i >= len(s.boxes) {
			return nil, errors.Join(fmt.Errorf("nats: partition %d, want 0 to %d", i, len(s.boxes)-1), sub.Close())
		}
		r := newReader(s, i, sub.arrived)
		if err := r.open(ctx, force); err != nil {
			return nil, errors.Join(fmt.Errorf("nats: partition %d of %s: %w", i, s.cfg.Name, err), sub.Close())
		}
		sub.readers = append(sub.readers, r)
	}
	return sub, nil
}

// subscription reads partitions in turn.
type subscription struct {
	readers []*reader
	arrived chan struct{} // has one token
}

// Arrived implements stream.Subscription.
func (s *subscription) Arrived() <-chan struct{} { return s.arrived }

// Poll implements stream.Subscription.
func (s *subscription) Poll(take func(m stream.Message)) (n int, err error) {
	ended := true
	for _, r := range s.readers {
		got, over, err := r.poll(take)
		n += got
		if err != nil {
			return n, r.failed(err)
		}
		ended = ended && over
	}
	if ended {
		err = stream.ErrEnded
	}
	return n, err
}

// Ack implements stream.Subscription. An error other than ErrTakenOver is the
// broker's: Ack can be called again after the next Poll.
func (s *subscription) Ack(through ...stream.Position) error {
	if len(through) == 0 {
		for _, r := range s.readers {
			if err := r.ack(maxSeq); err != nil {
				return r.failed(err)
			}
		}
	}
	for _, at := range through {
		i := slices.IndexFunc(s.readers, func(r *reader) bool { return r.partition == at.Partition })
		if i < 0 {
			return fmt.Errorf("nats: acknowledgement of partition %d, which this subscription does not read", at.Partition)
		}
		if err := s.readers[i].ack(at.Seq); err != nil {
			return s.readers[i].failed(err)
		}
	}
	return nil
}

// Close implements stream.Subscription.
func (s *subscription) Close() (err error) {
	for _, r := range s.readers {
		if e := r.close(); e != nil {
			err = errors.Join(err, r.failed(e))
		}
	}
	s.readers = nil
	return err
}
