package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/stream"
)

// KeptSlots is how many slots of a partition stay unacknowledged: one that takes over
// begins with them, and knows flows as its predecessor did.
const KeptSlots = 64

// ackSlots is after how many more an analyzer acknowledges: each time it waits for the broker.
const ackSlots = 16

// idle is how long a member waits for something to arrive, before it looks whether the
// broker was away.
const idle = 50 * time.Millisecond

// await waits until something has arrived.
func await(ctx context.Context, sub stream.Subscription) {
	t := time.NewTimer(idle)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-sub.Arrived():
	case <-t.C:
	}
}

// Analyzers work on partitions of flows. Work is a member's work.
type Analyzers struct {
	cfg     *control.Config
	streams Streams

	slots, malformed, restarted atomic.Uint64
}

// NewAnalyzers makes what analyses partitions.
func NewAnalyzers(cfg *control.Config, s Streams) *Analyzers {
	return &Analyzers{cfg: cfg, streams: s}
}

// Counts are slots that were analysed, frames that could not be read, and how often a
// partition began without the slots before.
func (a *Analyzers) Counts() (slots, malformed, restarted uint64) {
	return a.slots.Load(), a.malformed.Load(), a.restarted.Load()
}

// partWork is the work on one partition.
type partWork struct {
	*Analyzers
	part     int
	analyzer *flowwatch.PartAnalyzer
	run      uint64
	last     uint64 // slot
	join     joiner
	body     []byte // memory of a result, and of its messages
	message  []byte
	kept     []stream.Position // of the slots that are not acknowledged
}

// Work analyses a partition until ctx ends or it is taken over.
func (a *Analyzers) Work(ctx context.Context, part int, _ uint64) (err error) {
	sub, err := a.streams.Flows.Takeover(part)
	if err != nil {
		return err
	}
	defer sub.Close() //nolint:errcheck // what is not acknowledged is read again
	w := &partWork{Analyzers: a, part: part}
	for ctx.Err() == nil {
		n, err := sub.Poll(func(m stream.Message) {
			if e := w.take(ctx, &m); e != nil && err == nil {
				err = e
			}
		})
		if err != nil {
			return err
		}
		if n == 0 {
			await(ctx, sub)
			continue
		}
		if extra := len(w.kept) - KeptSlots; extra >= ackSlots {
			// Results are stored by the broker before their input is acknowledged.
			if err := a.streams.Lead.Flush(ctx); err != nil {
				return err
			}
			if err := sub.Ack(w.kept[extra-1]); err != nil {
				return err
			}
			w.kept = append(w.kept[:0], w.kept[extra:]...)
		}
	}
	return ctx.Err()
}

// take takes a message with a slot, or a chunk of one.
func (w *partWork) take(ctx context.Context, m *stream.Message) error {
	h, body, done, err := w.join.add(m.Data)
	if err != nil {
		w.malformed.Add(1)
		return nil
	}
	if !done {
		return nil
	}
	w.kept = append(w.kept, m.Position)
	var s flowwatch.PartSlot
	c := fieldcodec.NewReader(body)
	if s.Code(c); c.End() != nil {
		w.malformed.Add(1)
		return nil
	}
	if w.analyzer == nil || h.Run != w.run || h.Number != w.last+1 {
		if h.Run == w.run && h.Number <= w.last {
			return nil // it was read before
		}
		if w.analyzer, err = flowwatch.NewPartAnalyzer(w.cfg.Flows, w.streams.Partitions); err != nil {
			return err
		}
		w.restarted.Add(1)
	}
	w.run, w.last = h.Run, h.Number
	out := fieldcodec.NewWriter(w.body[:0])
	w.analyzer.Observe(&s).Code(out)
	w.body = out.Written()
	w.slots.Add(1)
	for {
		err := publish(w.streams.Lead, uint64(1+w.part), Header{Run: h.Run, Number: h.Number, Part: uint32(w.part)}, 'r', w.body, &w.message)
		if err == nil {
			return nil
		}
		// A leader that is away is waited for: the input stays in the broker.
		if err := w.streams.Lead.Flush(ctx); err != nil {
			return fmt.Errorf("cluster: results of slot %d: %w", h.Number, err)
		}
	}
}
