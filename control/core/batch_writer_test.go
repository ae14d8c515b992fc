package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model/record"
)

// heap is a store that keeps batches in memory, and fails when refuse is set.
type heap struct {
	mu     sync.Mutex
	kept   record.Batch
	refuse bool
}

func (h *heap) Append(_ context.Context, b *record.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse {
		return errors.New("no room")
	}
	h.kept.Traces = append(h.kept.Traces, b.Traces...)
	h.kept.Losses = append(h.kept.Losses, b.Losses...)
	h.kept.Ports = append(h.kept.Ports, b.Ports...)
	h.kept.Flows = append(h.kept.Flows, b.Flows...)
	h.kept.Incidents = append(h.kept.Incidents, b.Incidents...)
	return nil
}

// TestBatchWriterAccountsForEverything gives records of all kinds in random batches
// to a store that is slow and sometimes refuses: every record is kept, shed,
// failed or waiting, no more wait than may, incidents are never shed, and what is
// of more use is taken where what is of less use is not.
func TestBatchWriterAccountsForEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &heap{}
		k := NewBatchWriter(h, time.Hour, rapid.IntRange(1, 50).Draw(t, "room"), slog.New(slog.DiscardHandler))
		given, failed := 0, uint64(0)
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "write") {
				h.refuse = rapid.Bool().Draw(t, "refuse")
				waits, verdicts := k.Stats().Waiting, len(k.waiting.Incidents)
				if err := k.Flush(context.Background()); (err != nil) != (h.refuse && waits > 0) {
					t.Fatalf("flush of %d records: %v", waits, err)
				}
				if h.refuse {
					failed += uint64(waits - verdicts)
				}
				continue
			}
			b := record.Batch{
				Traces:    make([]record.Trace, rapid.IntRange(0, 5).Draw(t, "traces")),
				Losses:    make([]record.Loss, rapid.IntRange(0, 5).Draw(t, "losses")),
				Ports:     make([]record.PortSample, rapid.IntRange(0, 20).Draw(t, "ports")),
				Flows:     make([]record.FlowSlot, rapid.IntRange(0, 20).Draw(t, "flows")),
				Incidents: make([]record.Incident, rapid.IntRange(0, 5).Draw(t, "incidents")),
			}
			for i := range b.Incidents {
				b.Incidents[i] = record.Incident{ID: fmt.Sprint("i", given+i), Begin: noon, Updated: noon}
			}
			for i := range b.Traces {
				b.Traces[i].Time = noon
			}
			for i := range b.Losses {
				b.Losses[i].Time = noon
			}
			for i := range b.Ports {
				b.Ports[i].Time = noon
			}
			for i := range b.Flows {
				b.Flows[i].Time = noon
			}
			before := k.Stats()
			k.Add(&b)
			given += len(b.Incidents)
			after := k.Stats()
			sheddable := b.Len() - len(b.Incidents)
			if shed := int(after.Shed.Sum() - before.Shed.Sum()); shed > sheddable {
				t.Fatalf("%d shed of %d: incidents were among them", shed, sheddable)
			}
			if room := k.limit; after.Waiting > max(room, before.Waiting)+len(b.Incidents) {
				t.Fatalf("%d wait with room for %d", after.Waiting, room)
			}
			lost := after.Shed
			for _, rule := range []struct {
				shed uint64 // of what is of more use
				kept uint64 // of what is of less
			}{
				{lost.Traces - before.Shed.Traces, uint64(len(b.Losses)) - (lost.Losses - before.Shed.Losses)},
				{lost.Losses - before.Shed.Losses, uint64(len(b.Flows)) - (lost.Flows - before.Shed.Flows)},
				{lost.Flows - before.Shed.Flows, uint64(len(b.Ports)) - (lost.Ports - before.Shed.Ports)},
			} {
				if rule.shed > 0 && rule.kept > 0 {
					t.Fatalf("%+v of %+v: some of more use were shed, and %d of less were taken", lost, b, rule.kept)
				}
			}
		}
		s := k.Stats()
		if s.Failed < failed || s.SetAside != 0 || s.Superseded != 0 {
			t.Fatalf("%+v; want %d failed, none set aside", s, failed)
		}
		h.refuse = false
		if err := k.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		// Incidents wait while the store fails, as long as they are few.
		if s := k.Stats(); s.Waiting != 0 || len(h.kept.Incidents)+int(s.Failed-failed) != given {
			t.Fatalf("%d incidents kept of %d, %+v", len(h.kept.Incidents), given, s)
		}
	})
}

// TestBatchWriterWritesWhatIsLeft ends while records wait.
func TestBatchWriterWritesWhatIsLeft(t *testing.T) {
	h := &heap{}
	k := NewBatchWriter(h, time.Hour, 100, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	k.Add(&record.Batch{Incidents: make([]record.Incident, 3)})
	stop()
	if err := <-ended; err != nil || len(h.kept.Incidents) != 3 {
		t.Errorf("%d incidents kept, %v; want all 3", len(h.kept.Incidents), err)
	}
}
