package control

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

// Keeper brings records to a store without ever making the controller wait.
// Where the store is slower than the fabric, what is of least use is shed first
// and counted. Samples of ports are taken while the queue is less than half full,
// flows up to three quarters, losses and counters up to seven eighths, traces
// while there is room. Diagnoses and incidents are never shed; they are few.
type Keeper struct {
	store Store
	log   *slog.Logger
	every time.Duration
	most  int // records that may wait

	mu      sync.Mutex
	waiting record.Batch
	away    record.Batch // with the store
	stats   KeeperStats
	writing sync.Mutex // held while a batch is with the store
}

// KeeperStats account for records.
// Invariant: Taken = Kept + Shed.Sum() + Failed + Waiting.
type KeeperStats struct {
	Taken, Kept, Failed uint64
	Shed                Shed
	Waiting             int
	Batches             uint64
}

// Shed counts records that were not taken, by kind.
type Shed struct{ Ports, Flows, Losses, Counters, Traces uint64 }

// Sum is all of them.
func (s *Shed) Sum() uint64 { return s.Ports + s.Flows + s.Losses + s.Counters + s.Traces }

// NewKeeper makes a keeper that writes every so often, and holds at most so
// many records meanwhile.
func NewKeeper(s Store, every time.Duration, most int, log *slog.Logger) *Keeper {
	return &Keeper{store: s, every: every, most: most, log: log}
}

// Keep takes a copy of a batch.
func (k *Keeper) Keep(b *record.Batch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := &k.waiting
	k.stats.Taken += uint64(b.Len())
	w.Diagnoses = append(w.Diagnoses, b.Diagnoses...)
	w.Incidents = append(w.Incidents, b.Incidents...)
	shed := &k.stats.Shed
	w.Traces = take(k, w.Traces, b.Traces, k.most, &shed.Traces)
	w.Losses = take(k, w.Losses, b.Losses, k.most*7/8, &shed.Losses)
	w.Counters = take(k, w.Counters, b.Counters, k.most*7/8, &shed.Counters)
	w.Flows = take(k, w.Flows, b.Flows, k.most*3/4, &shed.Flows)
	w.Ports = take(k, w.Ports, b.Ports, k.most/2, &shed.Ports)
}

// take appends as many as there is room for in a queue of so many.
func take[T any](k *Keeper, list, more []T, most int, shed *uint64) []T {
	room := max(0, most-k.waiting.Len())
	if len(more) > room {
		*shed += uint64(len(more) - room)
		more = more[:room]
	}
	return append(list, more...)
}

// Run writes until ctx ends, and then what is left.
func (k *Keeper) Run(ctx context.Context) error {
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
func (k *Keeper) flush(ctx context.Context) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	b := k.waiting
	k.waiting, k.away = record.Batch{}, b
	k.mu.Unlock()
	n := b.Len()
	if n == 0 {
		return nil
	}
	err := k.store.Append(ctx, &b)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.away = record.Batch{}
	if err != nil {
		k.stats.Failed += uint64(n)
		return err
	}
	k.stats.Kept += uint64(n)
	k.stats.Batches++
	return nil
}

// Stats returns the present counts.
func (k *Keeper) Stats() KeeperStats {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.stats
	s.Waiting = int(s.Taken - s.Kept - s.Shed.Sum() - s.Failed)
	return s
}
