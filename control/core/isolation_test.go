package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// choosy is a store that checks batches as stores do, refuses the records of some
// names with an error that does not say which, and panics at others.
type choosy struct {
	heap
	appends int
	fault   error // of every append
	room    int   // records until the disk is full; below 0: it never is
}

func newChoosy() *choosy { return &choosy{room: -1} }

func (s *choosy) Append(ctx context.Context, b *record.Batch) error {
	s.appends++
	if s.fault != nil {
		return s.fault
	}
	if err := store.CheckBatch(b); err != nil {
		return err
	}
	for i := range b.Traces {
		switch b.Traces[i].Why {
		case "refused":
			return errors.New("conversion error")
		case "panics":
			panic("the driver has a bug")
		}
	}
	for i := range b.Incidents {
		if b.Incidents[i].Cause == "refused" {
			return errors.New("conversion error")
		}
	}
	if s.room >= 0 && b.Len() > s.room {
		return errors.New("could not write file")
	}
	s.room -= b.Len()
	return s.heap.Append(ctx, b)
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func incidents(n int) (list []record.Incident) {
	for i := range n {
		list = append(list, record.Incident{ID: fmt.Sprint("i", i), Begin: noon, Updated: noon})
	}
	return list
}

// TestBadRecordCostsItself mixes records with impossible times and values, records
// that the store refuses for reasons of its own, and good ones: every good one is
// stored, every bad one is counted under its kind and reason.
func TestBadRecordCostsItself(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newChoosy()
		w := NewBatchWriter(s, time.Hour, 10_000, slog.New(slog.DiscardHandler))
		bad := map[string]uint64{}
		b := record.Batch{Incidents: incidents(3), Ports: make([]record.PortSample, 100)}
		for i := range b.Ports {
			b.Ports[i] = record.PortSample{Time: noon, Node: "tor0"}
		}
		good := b.Len()
		for range rapid.IntRange(1, 200).Draw(rt, "traces") {
			tr := record.Trace{Time: noon, Hops: []record.TraceHop{{Time: noon}}}
			// What the checks do not find is rare: at most one in twenty.
			switch rapid.IntRange(0, 39).Draw(rt, "trace") {
			case 0:
				tr.Why = "refused"
				bad["set aside traces: "+refusedByStore]++
			case 1:
				tr.Why = "panics"
				bad["set aside traces: "+refusedByStore]++
			case 2, 3, 4, 5, 6, 7, 8, 9, 10:
				tr.Hops[0].Time = time.Date(1677, 11, 1, 0, 0, 0, 0, time.UTC)
				bad["set aside traces: time out of range"]++
			default:
				good++
			}
			b.Traces = append(b.Traces, tr)
		}
		w.Add(&b)
		if err := w.Flush(context.Background()); err != nil {
			rt.Fatalf("Flush = %v; want no error: the store works", err)
		}
		sum := uint64(0)
		for _, l := range w.SetAsideLosses() {
			if bad[l.Reason] != l.Count {
				rt.Errorf("%d %s; want %d", l.Count, l.Reason, bad[l.Reason])
			}
			sum += l.Count
		}
		st := w.Stats()
		if st.Written != uint64(good) || st.SetAside != sum || st.Waiting != 0 || st.Failed != 0 || len(s.kept.Incidents) != 3 {
			rt.Errorf("%+v, %d set aside, %d incidents kept; want %d written and all incidents", st, sum, len(s.kept.Incidents), good)
		}
	})
}

// TestForgedTimeDoesNotPoisonTheBatch: the mirror of 1677 that lost everything.
func TestForgedTimeDoesNotPoisonTheBatch(t *testing.T) {
	var text strings.Builder
	s := newChoosy()
	w := NewBatchWriter(s, time.Hour, 1000, slog.New(slog.NewTextHandler(&text, nil)))
	for range 100 {
		w.Add(&record.Batch{
			Traces:    []record.Trace{{Time: time.Unix(0, math.MinInt64).Add(25 * time.Hour)}},
			Incidents: incidents(1), Diagnoses: []record.Diagnosis{{Time: noon, ID: "d1"}},
			Flows: []record.FlowSlot{{Time: noon}},
		})
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if st := w.Stats(); st.Written != 300 || st.SetAside != 100 {
		t.Errorf("%+v; want 300 written and 100 set aside", st)
	}
	if list := w.SetAside(); len(list) != maxSetAside || list[0].Kind != store.Traces || list[0].Reason != "time out of range" {
		t.Errorf("kept %+v; want the newest %d, by kind and reason", list, maxSetAside)
	}
	if n := strings.Count(text.String(), "\n"); n < 1 || n > 20 {
		t.Errorf("%d lines in the log; want at least 1, and at most one per second:\n%s", n, text.String())
	}
	if a := w.alert(time.Now()); !strings.Contains(a, "traces") || !strings.Contains(a, "1677") {
		t.Errorf("alert %q; want one that names the kind and the time", a)
	}
	if a := w.alert(time.Now().Add(2 * alertFor)); a != "" {
		t.Errorf("alert %q long afterwards; want none", a)
	}
}

// TestFullDiskIsNotSearchedForBadRecords: whatever the error is, a store that keeps
// nothing is asked a few times and not once per record. Verdicts wait for it.
func TestFullDiskIsNotSearchedForBadRecords(t *testing.T) {
	for name, fault := range map[string]error{
		"known":   fmt.Errorf("append: %w", syscall.ENOSPC),
		"class":   fmt.Errorf("append: %w", store.ErrUnavailable),
		"closed":  store.ErrClosed,
		"unknown": errors.New("something is wrong"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newChoosy()
			s.fault = fault
			w := NewBatchWriter(s, time.Hour, 50_000, slog.New(slog.DiscardHandler))
			b := record.Batch{Ports: make([]record.PortSample, 20_000), Incidents: incidents(4), Diagnoses: []record.Diagnosis{{Time: noon, ID: "d1"}}}
			for i := range b.Ports {
				b.Ports[i].Time = noon
			}
			for round := range 3 {
				w.Add(&b)
				if err := w.Flush(t.Context()); !errors.Is(err, fault) {
					t.Fatalf("Flush = %v; want %v", err, fault)
				}
				st := w.Stats()
				if want := uint64(20_000 * (round + 1)); st.Failed != want || st.SetAside != 0 {
					t.Fatalf("%+v; want %d failed, none set aside", st, want)
				}
				b.Ports = b.Ports[:20_000]
			}
			if s.appends > 3*10 {
				t.Errorf("%d appends to a store that fails; want a few per batch", s.appends)
			}
			s.fault = nil
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st := w.Stats(); len(s.kept.Incidents) != 4 || st.Waiting != 0 || st.Superseded != 8 {
				t.Errorf("%d incidents kept, %+v; want the 4, in their newest state, after the store works again", len(s.kept.Incidents), st)
			}
		})
	}
}

// TestDiskThatFillsWhileRecordsAreIsolated: records that the full disk refused are
// failed, not bad.
func TestDiskThatFillsWhileRecordsAreIsolated(t *testing.T) {
	s := newChoosy()
	s.room = 500
	w := NewBatchWriter(s, time.Hour, 10_000, slog.New(slog.DiscardHandler))
	b := record.Batch{Traces: make([]record.Trace, 4000)}
	for i := range b.Traces {
		b.Traces[i].Time = noon
	}
	w.Add(&b)
	if err := w.Flush(t.Context()); err == nil {
		t.Fatal("no error of a full disk")
	}
	if st := w.Stats(); st.SetAside != 0 || st.Written == 0 || st.Written+st.Failed != 4000 {
		t.Errorf("%+v; want some written, the others failed, none set aside", st)
	}
}

// TestStoreThatFailsForDaysDoesNotFillTheMemory: the oldest verdicts go.
func TestStoreThatFailsForDaysDoesNotFillTheMemory(t *testing.T) {
	s := newChoosy()
	s.fault = syscall.ENOSPC
	w := NewBatchWriter(s, time.Hour, 800, slog.New(slog.DiscardHandler))
	for i := range 1000 {
		w.Add(&record.Batch{Incidents: []record.Incident{{ID: fmt.Sprint("i", i), Begin: noon, Updated: noon}}})
		_ = w.Flush(t.Context())
	}
	if st := w.Stats(); st.Waiting != 100 || st.Failed != 900 || w.waiting.Incidents[0].ID != "i900" {
		t.Errorf("%+v, the first is %s; want the newest 100 waiting", st, w.waiting.Incidents[0].ID)
	}
}
