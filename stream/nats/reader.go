package nats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/frame"
)

// reader reads one partition by a JetStream consumer of its own, whose name no other
// reader knows. A consumer begins with the first batch that is not acknowledged, as
// others are deleted. If the connection was lost, so may be batches that the broker has
// sent: the reader then makes another consumer, and skips what it has already read.
type reader struct {
	s         *Stream
	partition int
	consumer  jetstream.Consumer // nil: it must be made
	consuming jetstream.ConsumeContext
	connected uint64 // s.reconnects when the consumer was made
	stale     bool   // the consumer must be made again

	held  []heldBatch // handed over, not acknowledged, oldest first
	seen  uint64      // the last batch that was handed over
	floor uint64      // the last batch that was acknowledged
	gone  bool        // another reader has the partition
	wake  chan<- struct{}

	mu      sync.Mutex
	current int // consumers made so far; callbacks of earlier ones are ignored
	arrived []arrival
	next    uint64 // number of the next delivery; another one: some were lost
	gap     bool
	deleted bool // the broker has deleted the consumer
}

// arrival is a batch and its number in the stream.
type arrival struct {
	seq uint64
	msg jetstream.Msg
}

// heldBatch is a batch that was read.
type heldBatch struct {
	arrival        // msg is nil if it has to be delivered again before it can be acknowledged
	last    uint64 // position of its last message
	count   uint64
}

// A position is the number of the batch in the stream, and that of the message in the
// batch.
const (
	indexBits = 20 // messages have at least HeaderSize bytes
	maxSeq    = math.MaxUint64
)

// ackWait is after how long the broker delivers a batch again. Readers ignore batches
// that they hold.
const ackWait = 30 * time.Second

// errWQNotUnique is the broker's code if a subject of a work queue has a consumer.
const errWQNotUnique = 10100

func newReader(s *Stream, partition int, wake chan<- struct{}) *reader {
	return &reader{s: s, partition: partition, wake: wake}
}

// notify has the subscription's owner poll.
func (r *reader) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reader) failed(err error) error {
	return fmt.Errorf("nats: partition %d of %s: %w", r.partition, r.s.cfg.Name, err)
}

func (r *reader) prefix() string { return fmt.Sprintf("p%d-", r.partition) }

// open makes the consumer; with force it deletes that of another reader.
func (r *reader) open(ctx context.Context, force bool) error {
	for {
		err := r.create(ctx)
		if !isCode(err, errWQNotUnique) {
			return err
		}
		if !force {
			return stream.ErrHasReader
		}
		if err := r.deleteOthers(ctx); err != nil {
			return err
		}
	}
}

func isCode(err error, code jetstream.ErrorCode) bool {
	var e jetstream.JetStreamError
	return errors.As(err, &e) && e.APIError() != nil && e.APIError().ErrorCode == code
}

func (r *reader) deleteOthers(ctx context.Context) error {
	str, err := r.s.js.Stream(ctx, r.s.cfg.Name)
	if err != nil {
		return err
	}
	names := str.ConsumerNames(ctx)
	for name := range names.Name() {
		if !strings.HasPrefix(name, r.prefix()) {
			continue
		}
		if err := str.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	return names.Err()
}

// create makes a consumer and starts it.
func (r *reader) create(ctx context.Context) error {
	cfg := &r.s.cfg
	connected := r.s.reconnects.Load()
	c, err := r.s.js.CreateConsumer(ctx, cfg.Name, jetstream.ConsumerConfig{
		Durable: r.prefix() + nuid.Next(), FilterSubject: cfg.subject(r.partition),
		AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverAllPolicy, AckWait: ackWait,
		MaxAckPending: cfg.Unacknowledged, InactiveThreshold: cfg.ReaderTimeout,
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.current++
	mine := r.current
	r.arrived, r.next, r.gap, r.deleted = nil, 1, false, false
	r.mu.Unlock()
	consuming, err := c.Consume(func(m jetstream.Msg) { r.arrive(mine, m) }, jetstream.PullMaxMessages(cfg.Unacknowledged),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { r.fault(mine, err) }))
	if err != nil {
		return err
	}
	r.consumer, r.consuming, r.connected, r.stale = c, consuming, connected, false
	for i := range r.held {
		r.held[i].msg = nil
	}
	return nil
}

// arrive queues a batch that the broker delivered.
func (r *reader) arrive(consumer int, m jetstream.Msg) {
	md, err := m.Metadata()
	if err != nil {
		return // no message of JetStream
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if consumer != r.current || r.gap {
		return
	}
	defer r.notify()
	if md.Sequence.Consumer != r.next {
		r.gap = true
		return
	}
	r.next++
	r.arrived = append(r.arrived, arrival{md.Sequence.Stream, m})
}

func (r *reader) fault(consumer int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if consumer == r.current && (errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrConsumerNotFound)) {
		r.deleted = true
		r.notify()
	}
}

// poll hands over the batches that have arrived.
func (r *reader) poll(take func(m stream.Message)) (n int, over bool, err error) {
	if err := r.repair(); err != nil {
		return 0, false, err
	}
	r.mu.Lock()
	arrived := r.arrived
	r.arrived = nil
	r.mu.Unlock()
	for _, a := range arrived {
		switch {
		case a.seq <= r.floor:
			_ = a.msg.Ack() // the broker has not got it; if it gets lost again, so is this
		case a.seq <= r.seen:
			for i := range r.held {
				if r.held[i].seq == a.seq {
					r.held[i].msg = a.msg
				}
			}
		default:
			n += r.hand(a, take)
		}
	}
	if n == 0 && r.s.ended.Load() {
		over, err = r.empty()
	}
	return n, over, err
}

// hand hands over the messages of a batch.
func (r *reader) hand(a arrival, take func(m stream.Message)) int {
	h := heldBatch{arrival: a}
	for rest := a.msg.Data(); len(rest) > 0; {
		var m stream.Message
		used, err := frame.Parse(&m, rest)
		if err != nil {
			r.s.malformed.Add(1)
			break
		}
		rest = rest[used:]
		h.last = a.seq<<indexBits | h.count
		m.Position = stream.Position{Partition: r.partition, Seq: h.last}
		h.count++
		r.s.read.Add(1)
		take(m)
	}
	r.held, r.seen = append(r.held, h), a.seq
	return int(h.count)
}

// repair makes the consumer again if deliveries may have been lost.
func (r *reader) repair() error {
	r.mu.Lock()
	if r.gone = r.gone || r.deleted; r.gone {
		r.mu.Unlock()
		return stream.ErrTakenOver
	}
	lost := r.stale || r.gap || r.connected != r.s.reconnects.Load()
	r.mu.Unlock()
	if !lost || !r.s.js.Conn().IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.s.cfg.Timeout)
	defer cancel()
	if r.consumer != nil {
		err := r.s.js.DeleteConsumer(ctx, r.s.cfg.Name, r.consumer.CachedInfo().Name)
		switch {
		case errors.Is(err, jetstream.ErrConsumerNotFound):
			r.gone = true
			return stream.ErrTakenOver
		case err != nil:
			return nil // the broker is away: the next poll tries again
		}
		r.consuming.Stop()
		r.consumer = nil
	}
	if err := r.create(ctx); isCode(err, errWQNotUnique) {
		r.gone = true
		return stream.ErrTakenOver
	}
	return nil
}

// empty reports whether the broker has nothing that was not handed over. The stream knows:
// a consumer hears of a batch a little after it was stored.
func (r *reader) empty() (bool, error) {
	if r.consumer == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.s.cfg.Timeout)
	defer cancel()
	if _, err := r.consumer.Info(ctx); errors.Is(err, jetstream.ErrConsumerNotFound) {
		return false, stream.ErrTakenOver
	}
	str, err := r.s.js.Stream(ctx, r.s.cfg.Name)
	if err != nil {
		return false, nil // the next poll tries again
	}
	last, err := str.GetLastMsgForSubject(ctx, r.s.cfg.subject(r.partition))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return true, nil
	case err != nil:
		return false, nil
	}
	return last.Sequence <= r.seen, nil
}

// errAgain is returned if batches have to be delivered again before they can be
// acknowledged.
var errAgain = errors.New("the connection was lost; acknowledge again after the next poll")

// ack acknowledges whole batches up to a position.
func (r *reader) ack(through uint64) error {
	n := 0
	for n < len(r.held) && r.held[n].last <= through {
		n++
	}
	if n == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.s.cfg.Timeout)
	defer cancel()
	for i := range r.held[:n] {
		h := &r.held[i]
		if h.msg == nil {
			return errAgain
		}
		err := error(nil)
		if i == n-1 { // the broker answers the last, after the others
			err = h.msg.DoubleAck(ctx)
		} else {
			err = h.msg.Ack()
		}
		if err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			return r.ackFailed(ctx, err)
		}
	}
	for _, h := range r.held[:n] {
		r.s.acknowledged.Add(h.count)
		r.floor = h.seq
	}
	r.held = r.held[:copy(r.held, r.held[n:])]
	return nil
}

// ackFailed returns why an acknowledgement failed: the consumer is another reader's
// now, or the broker is away.
func (r *reader) ackFailed(ctx context.Context, cause error) error {
	r.stale = true
	if r.consumer == nil {
		return cause
	}
	if _, err := r.consumer.Info(ctx); errors.Is(err, jetstream.ErrConsumerNotFound) {
		r.gone = true
		return stream.ErrTakenOver
	}
	return cause
}

// close gives the partition back.
func (r *reader) close() error {
	if r.consumer == nil {
		return nil
	}
	r.consuming.Stop()
	if r.gone {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.s.cfg.Timeout)
	defer cancel()
	err := r.s.js.DeleteConsumer(ctx, r.s.cfg.Name, r.consumer.CachedInfo().Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	return err
}
