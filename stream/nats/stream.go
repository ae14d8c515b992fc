package nats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/frame"
)

// Stream is one end of a stream. It may be used concurrently.
type Stream struct {
	cfg    Config
	js     jetstream.JetStream
	boxes  []*outbox
	closed atomic.Bool // Close was called
	ended  atomic.Bool // nothing more is sent to the broker
	stop   context.CancelFunc
	wg     sync.WaitGroup
	// reconnects counts connections: what a broker sent into a lost one must be read again.
	reconnects atomic.Uint64

	read, acknowledged, malformed atomic.Uint64
}

// Open opens a stream, and makes it if there is none. The connection stays the caller's.
func Open(ctx context.Context, conn *client.Conn, cfg Config) (*Stream, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(cfg.Timeout))
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	want := jetstream.StreamConfig{
		Name: cfg.Name, Subjects: []string{cfg.Name + ".*"}, Retention: jetstream.WorkQueuePolicy,
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: int64(cfg.Backlog),
		Duplicates: cfg.DuplicateWindow, Replicas: cfg.Replicas, Storage: jetstream.FileStorage,
		Metadata: map[string]string{"partitions": fmt.Sprint(cfg.Partitions)},
	}
	// A stream as it should be is left alone: members that join do not disturb the others.
	if _, err = js.CreateStream(ctx, want); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		_, err = js.UpdateStream(ctx, want)
	}
	if err != nil {
		return nil, fmt.Errorf("nats: stream %s: %w", cfg.Name, err)
	}
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Stream{cfg: cfg, js: js, stop: stop}
	publisher := nuid.Next()
	for i := range cfg.Partitions {
		b := newOutbox(js, cfg.subject(i), fmt.Sprintf("%s-%d", publisher, i), int(cfg.BufferSize), cfg.Timeout)
		s.boxes = append(s.boxes, b)
		s.wg.Go(func() { b.run(sending) })
	}
	connected := conn.StatusChanged(client.CONNECTED)
	s.wg.Go(func() {
		for {
			select {
			case <-sending.Done():
				conn.RemoveStatusListener(connected)
				return
			case <-connected:
				s.reconnects.Add(1)
			}
		}
	})
	return s, nil
}

func (c *Config) subject(partition int) string { return fmt.Sprintf("%s.%d", c.Name, partition) }

// Partitions returns the number of partitions.
func (s *Stream) Partitions() int { return len(s.boxes) }

// Publish copies a message into the buffer of its partition, from where it is sent to
// the broker. It does not block: the error is the reason why a message was lost, and it
// is counted. Flush waits until the broker has it.
func (s *Stream) Publish(key uint64, m stream.Message) error {
	return s.boxes[key%uint64(len(s.boxes))].add(&m)
}

// Flush waits until the broker has stored all that was accepted before.
func (s *Stream) Flush(ctx context.Context) error {
	for _, b := range s.boxes {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close sends what was accepted and publishes nothing more; what waits in the broker can
// be read. The error says how many messages the broker did not take in time.
func (s *Stream) Close() error {
	for _, b := range s.boxes {
		b.close()
	}
	if s.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	err := s.Flush(ctx)
	s.stop()
	s.wg.Wait()
	s.ended.Store(true)
	if st := s.Stats(); st.Waiting > 0 {
		return fmt.Errorf("nats: %d messages of %s are lost, the broker did not take them: %w", st.Waiting, s.cfg.Name, err)
	}
	return nil
}

// Stats sums the counters of all partitions.
func (s *Stream) Stats() (sum stream.Stats) {
	for _, b := range s.boxes {
		st := b.counts()
		sum.Published += st.Published
		sum.Delivered += st.Delivered
		sum.Waiting += st.Waiting
		sum.Full += st.Full
		sum.TooLarge += st.TooLarge
		sum.Closed += st.Closed
		sum.Duplicate += st.Duplicate
	}
	sum.Read, sum.Acknowledged, sum.Malformed = s.read.Load(), s.acknowledged.Load(), s.malformed.Load()
	return sum
}

// Delete deletes the stream and its messages.
func Delete(ctx context.Context, conn *client.Conn, name string) error {
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	if err := js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("nats: delete stream %s: %w", name, err)
	}
	return nil
}

// maxMessage is the largest message that a batch can have.
const maxMessage = maxBatch - frame.HeaderSize
