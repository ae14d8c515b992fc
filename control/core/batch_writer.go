package core

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model/record"
)

// Appender keeps batches. A batch that was appended survives a crash.
type Appender interface {
	Append(ctx context.Context, b *record.Batch) error
}

// BatchWriter brings records to a store without ever making the controller wait.
// Where the store is slower than the fabric, the least useful records are shed
// first and counted: port samples when the queue is half full, flows at three
// quarters, losses and counters at seven eighths, traces when it is full.
// Diagnoses and incidents are never shed; they are few.
type BatchWriter struct {
	store    Appender
	log      *slog.Logger
	interval time.Duration
	limit    int // records that may wait

	mu       sync.Mutex
	waiting  record.Batch
	inFlight record.Batch // given to the store, not yet confirmed
	stats    WriterStats
	writing  sync.Mutex // held while a batch is in flight
}

// WriterStats account for records.
// Invariant: Accepted = Written + Shed.Sum() + Failed + Waiting.
type WriterStats struct {
	Accepted, Written, Failed uint64
	Shed                      Shed
	Waiting                   int
	Batches                   uint64
}

// Shed counts records that found the queue too full, by kind.
type Shed struct{ Ports, Flows, Losses, Counters, Traces uint64 }

// Sum returns the records of all kinds.
func (s *Shed) Sum() uint64 { return s.Ports + s.Flows + s.Losses + s.Counters + s.Traces }

// NewBatchWriter makes a writer that writes once per interval and queues at most
// limit records.
func NewBatchWriter(s Appender, interval time.Duration, limit int, log *slog.Logger) *BatchWriter {
	return &BatchWriter{store: s, interval: interval, limit: limit, log: log}
}

// Add queues a copy of a batch.
func (w *BatchWriter) Add(b *record.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &w.waiting
	w.stats.Accepted += uint64(b.Len())
	q.Diagnoses = append(q.Diagnoses, b.Diagnoses...)
	q.Incidents = append(q.Incidents, b.Incidents...)
	shed := &w.stats.Shed
	q.Traces = appendWithin(w, q.Traces, b.Traces, w.limit, &shed.Traces)
	q.Losses = appendWithin(w, q.Losses, b.Losses, w.limit*7/8, &shed.Losses)
	q.Counters = appendWithin(w, q.Counters, b.Counters, w.limit*7/8, &shed.Counters)
	q.Flows = appendWithin(w, q.Flows, b.Flows, w.limit*3/4, &shed.Flows)
	q.Ports = appendWithin(w, q.Ports, b.Ports, w.limit/2, &shed.Ports)
}

// appendWithin appends as many records as a queue of limit records can still
// take, and counts the others.
func appendWithin[T any](w *BatchWriter, list, more []T, limit int, shed *uint64) []T {
	free := max(0, limit-w.waiting.Len())
	if len(more) > free {
		*shed += uint64(len(more) - free)
		more = more[:free]
	}
	return append(list, more...)
}

// Run writes until ctx ends, and then what is left.
func (w *BatchWriter) Run(ctx context.Context) error {
	t := time.NewTicker(w.interval)
	defer t.Stop()
	// A batch that is in flight when ctx ends is written like the others.
	writing := context.WithoutCancel(ctx)
	for {
		select {
		case <-ctx.Done():
			return w.Flush(writing)
		case <-t.C:
			if err := w.Flush(writing); err != nil {
				w.log.Error("write to store failed", "error", err)
			}
		}
	}
}

// Flush writes all queued records now.
func (w *BatchWriter) Flush(ctx context.Context) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	b := w.waiting
	w.waiting, w.inFlight = record.Batch{}, b
	w.mu.Unlock()
	n := b.Len()
	if n == 0 {
		return nil
	}
	err := w.store.Append(ctx, &b)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight = record.Batch{}
	if err != nil {
		w.stats.Failed += uint64(n)
		return err
	}
	w.stats.Written += uint64(n)
	w.stats.Batches++
	return nil
}

// Queued returns how many records wait to be written.
func (w *BatchWriter) Queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting.Len()
}

// Stats returns the present counts.
func (w *BatchWriter) Stats() WriterStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Waiting = int(s.Accepted - s.Written - s.Shed.Sum() - s.Failed)
	return s
}

// HealthStage is the store's part of the pipeline's account.
func (w *BatchWriter) HealthStage() api.Stage {
	s := w.Stats()
	return api.Stage{
		Name: "store", Title: "Store (DuckDB)", Unit: "records",
		In: s.Accepted, Out: s.Written, Queued: s.Waiting, QueueLimit: w.limit,
		Losses: []api.StageLoss{
			{Reason: "shed ports", About: "write queue half full: the store is too slow", Count: s.Shed.Ports},
			{Reason: "shed flows", About: "write queue 3/4 full", Count: s.Shed.Flows},
			{Reason: "shed losses", About: "write queue 7/8 full", Count: s.Shed.Losses},
			{Reason: "shed counters", About: "write queue 7/8 full", Count: s.Shed.Counters},
			{Reason: "shed traces", About: "write queue full", Count: s.Shed.Traces},
			{Reason: "failed", About: "the store returned an error", Count: s.Failed},
		},
	}
}
