package core

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
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
// A queue is full by the number of its records, or by their memory. Diagnoses and
// incidents are few: the oldest are shed only beyond an eighth of the memory. A record that the store
// refuses is set aside, and the others of its batch are stored. While the store
// itself fails, diagnoses and incidents wait for it.
type BatchWriter struct {
	store    Appender
	log      *slog.Logger
	interval time.Duration
	limit    int // records that may wait

	mu       sync.Mutex
	waiting  record.Batch
	memory   int          // of those that wait, without diagnoses and incidents
	inFlight record.Batch // given to the store, not yet confirmed
	stats    WriterStats
	refused  refusedRecords
	writing  sync.Mutex // held while a batch is in flight
	attempts atomic.Uint64
}

// WriterStats account for records.
// Invariant: Accepted = Written + Shed.Sum() + Failed + SetAside + Superseded + Waiting.
type WriterStats struct {
	Accepted, Written, Failed uint64
	SetAside                  uint64 // refused by the store, one by one
	Superseded                uint64 // states of incidents that a later one replaced while the store failed
	Shed                      Shed
	Waiting                   int
	Batches                   uint64
}

// Shed counts records that found the queue too full, by kind.
type Shed struct{ Ports, Flows, Losses, Counters, Traces, Diagnoses, Incidents uint64 }

// Sum returns the records of all kinds.
func (s *Shed) Sum() uint64 {
	return s.Ports + s.Flows + s.Losses + s.Counters + s.Traces + s.Diagnoses + s.Incidents
}

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
	shed := &w.stats.Shed
	q.Diagnoses = addVerdicts(w, q.Diagnoses, b.Diagnoses, diagnosisMemory, &shed.Diagnoses)
	q.Incidents = addVerdicts(w, q.Incidents, b.Incidents, incidentMemory, &shed.Incidents)
	q.Traces = appendWithin(w, q.Traces, b.Traces, 8, traceMemory, &shed.Traces)
	q.Losses = appendWithin(w, q.Losses, b.Losses, 7, fixedMemory, &shed.Losses)
	q.Counters = appendWithin(w, q.Counters, b.Counters, 7, fixedMemory, &shed.Counters)
	q.Flows = appendWithin(w, q.Flows, b.Flows, 6, flowMemory, &shed.Flows)
	q.Ports = appendWithin(w, q.Ports, b.Ports, 4, fixedMemory, &shed.Ports)
}

// appendWithin appends as many records as some eighths of the queue can still take,
// and counts the others.
func appendWithin[T any](w *BatchWriter, list, more []T, eighths int, size func(*T) int, shed *uint64) []T {
	free, memory, n := w.limit*eighths/8-w.waiting.Len(), w.limit*RecordMemory*eighths/8, 0
	for n < min(len(more), free) {
		one := size(&more[n])
		if w.memory+one > memory {
			break
		}
		w.memory += one
		n++
	}
	*shed += uint64(len(more) - n)
	return append(list, more[:n]...)
}

// addVerdicts appends diagnoses or incidents, and sheds the oldest if they take too
// much memory.
func addVerdicts[T any](w *BatchWriter, list, more []T, size func(*T) int, shed *uint64) []T {
	if len(more) == 0 {
		return list
	}
	kept, others := newestWithin(append(list, more...), verdictMemory(w.limit), size)
	*shed += others
	return kept
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

// Flush writes all queued records now. An error is the store's: records that it
// refuses are set aside.
func (w *BatchWriter) Flush(ctx context.Context) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	b := w.waiting
	w.waiting, w.inFlight, w.memory = record.Batch{}, b, 0
	w.mu.Unlock()
	if b.Len() == 0 {
		return nil
	}
	p := isolation{ctx: ctx, store: w.store, attempts: &w.attempts}
	p.write(&b)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight = record.Batch{}
	w.stats.Written += p.written
	w.stats.SetAside += uint64(len(p.refused))
	w.refused.add(w.log, p.refused)
	if p.err != nil {
		w.requeue(&p.failed)
		return p.err
	}
	w.stats.Batches++
	return nil
}

// requeue keeps diagnoses and incidents of a batch that the store could not write,
// and counts the others as failed. The lock is held.
func (w *BatchWriter) requeue(failed *record.Batch) {
	q := &w.waiting
	q.Diagnoses = append(failed.Diagnoses, q.Diagnoses...)
	q.Incidents = append(failed.Incidents, q.Incidents...)
	w.stats.Failed += uint64(failed.Len() - len(failed.Diagnoses) - len(failed.Incidents))
	last := map[string]int{}
	for i := range q.Incidents {
		last[q.Incidents[i].ID] = i
	}
	kept := q.Incidents[:0:0] // readers may have the list that failed
	for i := range q.Incidents {
		if last[q.Incidents[i].ID] == i {
			kept = append(kept, q.Incidents[i])
		}
	}
	w.stats.Superseded += uint64(len(q.Incidents) - len(kept))
	q.Incidents = kept
	// A store that fails for days must not fill the memory: the oldest go.
	diagnoses, tooLarge := newestWithin(q.Diagnoses, verdictMemory(w.limit), diagnosisMemory)
	incidents, others := newestWithin(q.Incidents, verdictMemory(w.limit), incidentMemory)
	q.Diagnoses, q.Incidents, w.stats.Failed = diagnoses, incidents, w.stats.Failed+tooLarge+others
	q.Diagnoses, w.stats.Failed = newest(q.Diagnoses, w.limit/8, w.stats.Failed)
	q.Incidents, w.stats.Failed = newest(q.Incidents, w.limit/8, w.stats.Failed)
}

// newest returns the last n records, and adds the number of the others to a count.
func newest[T any](list []T, n int, others uint64) ([]T, uint64) {
	extra := max(0, len(list)-max(n, 1))
	return list[extra:], others + uint64(extra)
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
	s.Waiting = int(s.Accepted - s.Written - s.Shed.Sum() - s.Failed - s.SetAside - s.Superseded)
	return s
}

// HealthStage is the store's part of the pipeline's account.
func (w *BatchWriter) HealthStage() api.Stage {
	s := w.Stats()
	return api.Stage{
		Name: "store", Title: "Store", Unit: "records",
		In: s.Accepted, Out: s.Written, Queued: s.Waiting, QueueLimit: w.limit,
		Losses: append([]api.StageLoss{
			{Reason: "shed ports", About: "write queue half full: the store is too slow", Count: s.Shed.Ports},
			{Reason: "shed flows", About: "write queue 3/4 full", Count: s.Shed.Flows},
			{Reason: "shed losses", About: "write queue 7/8 full", Count: s.Shed.Losses},
			{Reason: "shed counters", About: "write queue 7/8 full", Count: s.Shed.Counters},
			{Reason: "shed traces", About: "write queue full", Count: s.Shed.Traces},
			{Reason: "shed diagnoses", About: "the oldest, beyond an eighth of the write queue's memory", Count: s.Shed.Diagnoses},
			{Reason: "shed incidents", About: "the oldest, beyond an eighth of the write queue's memory", Count: s.Shed.Incidents},
			{Reason: "failed", About: "the store returned an error", Count: s.Failed},
			{Reason: "superseded", About: "states of incidents that a later one replaced while the store failed", Count: s.Superseded, Expected: true},
		}, w.SetAsideLosses()...),
	}
}
