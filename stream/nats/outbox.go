package nats

import (
	"context"
	"fmt"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/frame"
)

// outbox sends the messages of a partition, one batch at a time: the next one only when
// the broker has stored the last, so that a batch that is repeated stays in order. What
// arrives meanwhile is the next batch, so batches grow with the load. The broker drops
// a repetition by its ID: that of the message, which is then alone in its batch, or that
// of the publisher with a number.
type outbox struct {
	js            jetstream.JetStream
	subject, name string
	limit         int
	timeout       time.Duration

	mu      sync.Mutex
	blocks  [][]byte // accepted; of the first, what begins at first is in no batch
	first   int
	free    []byte // a block that is empty
	held    int    // bytes of messages that the broker does not have
	count   int    // of messages that wait
	sending int    // messages of the batch that is sent, a part of the first block
	bytes   int    // of that batch
	batches uint64
	closed  bool
	wake    chan struct{} // has one token if there is something to send
	idle    chan struct{} // closed when nothing waits; nil: no caller waits
	stats   stream.Stats
}

// blockSize is the memory that an outbox takes at a time: one buffer that grows would be copied,
// and be new memory, again and again while it waits for the broker.
const blockSize = 1 << 20

func newOutbox(js jetstream.JetStream, subject, name string, limit int, timeout time.Duration) *outbox {
	return &outbox{js: js, subject: subject, name: name, limit: limit, timeout: timeout, wake: make(chan struct{}, 1)}
}

// add accepts a message, or returns why not.
func (b *outbox) add(m *stream.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Published++
	need := frame.Size(m)
	switch {
	case b.closed:
		b.stats.Closed++
		return stream.ErrClosed
	case need > b.limit || len(m.Data) > maxMessage:
		b.stats.TooLarge++
		return stream.ErrTooLarge
	case b.held+need > b.limit:
		b.stats.Full++
		return stream.ErrFull
	}
	last := len(b.blocks) - 1
	if last < 0 || cap(b.blocks[last])-len(b.blocks[last]) < need {
		block := b.free
		if b.free = nil; cap(block) < need {
			block = make([]byte, 0, max(blockSize, need))
		}
		b.blocks = append(b.blocks, block)
		last++
	}
	b.blocks[last] = frame.AppendTo(b.blocks[last], m) // which does not move: the batch that is sent is a part of it
	b.held += need
	b.count++
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return nil
}

// run sends until ctx ends.
func (b *outbox) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		for ctx.Err() == nil {
			batch, id := b.next()
			if len(batch) == 0 {
				break
			}
			duplicate, err := b.send(ctx, batch, id)
			if err != nil {
				return // ctx ended; the batch stays counted as waiting
			}
			b.sent(duplicate)
		}
	}
}

// next returns the next batch: one message that has an ID, or several without. It is valid until
// sent is called.
func (b *outbox) next() (batch []byte, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == 0 {
		return nil, ""
	}
	waiting := b.blocks[0][b.first:]
	used, n := 0, 0
	for used < len(waiting) {
		var m stream.Message
		size, err := frame.Parse(&m, waiting[used:])
		if err != nil {
			panic(err) // add wrote it
		}
		if n > 0 && (m.ID != 0 || used+size > maxBatch) {
			break
		}
		used += size
		n++
		if m.ID != 0 {
			id = fmt.Sprintf("%s-%x", b.subject, m.ID)
			break
		}
	}
	if id == "" {
		b.batches++
		id = fmt.Sprintf("%s-%d", b.name, b.batches)
	}
	b.first += used
	b.count, b.sending, b.bytes = b.count-n, n, used
	return waiting[:used:used], id
}

// dropBlock drops the first block, and keeps its memory for another.
func (b *outbox) dropBlock() {
	if cap(b.blocks[0]) == blockSize {
		b.free = b.blocks[0][:0]
	}
	b.blocks = append(b.blocks[:0], b.blocks[1:]...)
	b.first = 0
}

// Pauses between attempts to send a batch.
const (
	firstPause = 2 * time.Millisecond
	longPause  = 250 * time.Millisecond
)

// send repeats a batch until the broker has it or ctx ends. It reports whether the
// broker had it before the first attempt.
func (b *outbox) send(ctx context.Context, batch []byte, id string) (duplicate bool, err error) {
	m := &client.Msg{Subject: b.subject, Data: batch}
	for pause, attempt := firstPause, 1; ; attempt++ {
		one, cancel := context.WithTimeout(ctx, b.timeout)
		ack, err := b.js.PublishMsg(one, m, jetstream.WithMsgID(id), jetstream.WithRetryAttempts(0))
		cancel()
		if err == nil {
			// After a failure a duplicate is most likely our own.
			return ack.Duplicate && attempt == 1, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, longPause)
	}
}

// sent counts the batch that the broker has.
func (b *outbox) sent(duplicate bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if duplicate {
		b.stats.Duplicate += uint64(b.sending)
	} else {
		b.stats.Delivered += uint64(b.sending)
	}
	b.held -= b.bytes
	b.sending, b.bytes = 0, 0
	if b.first == len(b.blocks[0]) {
		b.dropBlock()
	}
	if b.count == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// flush waits until nothing waits.
func (b *outbox) flush(ctx context.Context) error {
	b.mu.Lock()
	if b.count+b.sending == 0 {
		b.mu.Unlock()
		return nil
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("nats: %s: the broker does not take messages: %w", b.subject, ctx.Err())
	}
}

func (b *outbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

func (b *outbox) counts() stream.Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.stats
	st.Waiting = uint64(b.count + b.sending)
	return st
}
