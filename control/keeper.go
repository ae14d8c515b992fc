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
// Where the store is slower than the fabric, what is of least use is shed
// first and counted: samples of ports, then flows, then losses and counters.
// Traces, diagnoses and incidents are never shed; they are few.
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
// Invariant: Taken = Kept + Shed + Failed + Waiting.
type KeeperStats struct {
	Taken, Kept, Shed, Failed uint64
	Waiting                   int
	Batches                   uint64
}

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
	w.Traces = append(w.Traces, b.Traces...)
	w.Diagnoses = append(w.Diagnoses, b.Diagnoses...)
	w.Incidents = append(w.Incidents, b.Incidents...)
	w.Losses = take(k, w.Losses, b.Losses)
	w.Counters = take(k, w.Counters, b.Counters)
	w.Flows = take(k, w.Flows, b.Flows)
	w.Ports = take(k, w.Ports, b.Ports)
}

// take appends as many as there is room for. More room is left for what is
// taken first.
func take[T any](k *Keeper, list, more []T) []T {
	room := max(0, k.most-k.waiting.Len())
	if len(more) > room {
		k.stats.Shed += uint64(len(more) - room)
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
	s.Waiting = int(s.Taken - s.Kept - s.Shed - s.Failed)
	return s
}
