package core

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// Store keeps batches. A batch that was appended survives a crash.
type Store interface {
	Append(ctx context.Context, b *record.Batch) error
}

// BatchWriter brings records to a store without ever making the controller wait.
// Where the store is slower than the fabric, what is of least use is shed first
// and counted. Samples of ports are taken while the queue is less than half full,
// flows up to three quarters, losses and counters up to seven eighths, traces
// while there is room. Diagnoses and incidents are never shed; they are few.
type BatchWriter struct {
	store Store
	log   *slog.Logger
	every time.Duration
	limit  int // records that may wait

	mu      sync.Mutex
	waiting record.Batch
	inFlight    record.Batch // with the store
	stats   WriterStats
	writing sync.Mutex // findPending while a batch is with the store
}

// WriterStats account for records.
// Invariant: Taken = Kept + Shed.Sum() + Failed + Waiting.
type WriterStats struct {
	Accepted, Written, Failed uint64
	Shed                Shed
	Waiting             int
	Batches             uint64
}

// Shed counts records that were not taken, by kind.
type Shed struct{ Ports, Flows, Losses, Counters, Traces uint64 }

// Sum is all of them.
func (s *Shed) Sum() uint64 { return s.Ports + s.Flows + s.Losses + s.Counters + s.Traces }

// NewBatchWriter makes a keeper that writes every so often, and holds at most so
// many records meanwhile.
func NewBatchWriter(s Store, every time.Duration, most int, log *slog.Logger) *BatchWriter {
	return &BatchWriter{store: s, every: every, limit: most, log: log}
}

// Add takes a copy of a batch.
func (k *BatchWriter) Add(b *record.Batch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := &k.waiting
	k.stats.Accepted += uint64(b.Len())
	w.Diagnoses = append(w.Diagnoses, b.Diagnoses...)
	w.Incidents = append(w.Incidents, b.Incidents...)
	shed := &k.stats.Shed
	w.Traces = appendWithin(k, w.Traces, b.Traces, k.limit, &shed.Traces)
	w.Losses = appendWithin(k, w.Losses, b.Losses, k.limit*7/8, &shed.Losses)
	w.Counters = appendWithin(k, w.Counters, b.Counters, k.limit*7/8, &shed.Counters)
	w.Flows = appendWithin(k, w.Flows, b.Flows, k.limit*3/4, &shed.Flows)
	w.Ports = appendWithin(k, w.Ports, b.Ports, k.limit/2, &shed.Ports)
}

// appendWithin appends as many as there is room for in a queue of so many.
func appendWithin[T any](k *BatchWriter, list, more []T, most int, shed *uint64) []T {
	room := max(0, most-k.waiting.Len())
	if len(more) > room {
		*shed += uint64(len(more) - room)
		more = more[:room]
	}
	return append(list, more...)
}

// Run writes until ctx ends, and then what is left.
func (k *BatchWriter) Run(ctx context.Context) error {
	t := time.NewTicker(k.every)
	defer t.Stop()
	// A batch that is with the store when ctx ends is written like the others.
	writing := context.WithoutCancel(ctx)
	for {
		select {
		case <-ctx.Done():
			return k.flush(writing)
		case <-t.C:
			if err := k.flush(writing); err != nil {
				k.log.Error("records were not kept", "error", err)
			}
		}
	}
}

// flush writes what waits.
func (k *BatchWriter) flush(ctx context.Context) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	b := k.waiting
	k.waiting, k.inFlight = record.Batch{}, b
	k.mu.Unlock()
	n := b.Len()
	if n == 0 {
		return nil
	}
	err := k.store.Append(ctx, &b)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inFlight = record.Batch{}
	if err != nil {
		k.stats.Failed += uint64(n)
		return err
	}
	k.stats.Written += uint64(n)
	k.stats.Batches++
	return nil
}

// Stats returns the present counts.
func (k *BatchWriter) Stats() WriterStats {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.stats
	s.Waiting = int(s.Accepted - s.Written - s.Shed.Sum() - s.Failed)
	return s
}
