package transfer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
)

var base = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, keep store.Retention) *embedded.Store {
	t.Helper()
	cfg := embedded.DefaultConfig()
	cfg.MaxPage, cfg.Retention = 7, keep // many pages
	s, err := embedded.Open(filepath.Join(t.TempDir(), "weft.duckdb"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fill appends records of all kinds, many of equal times.
func fill(t *testing.T, s *embedded.Store) {
	t.Helper()
	for i := range 30 {
		at := base.Add(time.Duration(i/4) * time.Second)
		b := &record.Batch{
			Flows:     []record.FlowSlot{{Time: at, Slot: 1e7, Src: "h1", Dst: "h2", Packets: uint64(i), Bytes: 100, Path: []record.FlowHop{{Switch: "e1", Packets: 3}}}},
			Losses:    []record.Loss{{Time: at, From: "e1", To: "a1", Packets: uint64(i)}},
			Ports:     []record.PortSample{{Time: at, Node: fmt.Sprint("e", i%3), Port: 1, Queue: model.Bytes(i), Samples: 2}},
			Traces:    []record.Trace{{Time: at, ID: uint64(i), Hops: []record.TraceHop{{Time: at, Switch: "e1"}}}},
			Counters:  []record.Counter{{Time: at, Name: "c", Packets: uint64(i)}},
			Diagnoses: []record.Diagnosis{{Time: at, ID: fmt.Sprint(i)}},
			Incidents: []record.Incident{{ID: fmt.Sprint("i", i%9), Begin: base, Updated: at, Cause: fmt.Sprint(i)}},
		}
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AppendIncidentAction(t.Context(), record.IncidentAction{Time: base, Incident: "i1", Kind: "ack", Who: "x"}); err != nil {
		t.Fatal(err)
	}
}

// all walks all pages of a query.
func all[T any](t *testing.T, query queryFunc[T], q record.Query) (list []T) {
	t.Helper()
	for {
		p, err := query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p.Items...)
		if q.After = p.Next; q.After == "" {
			return list
		}
	}
}

func same[T any](t *testing.T, what string, a, b queryFunc[T], q record.Query) {
	t.Helper()
	want := all(t, a, q)
	if len(want) == 0 {
		t.Errorf("%s: none to compare", what)
	}
	if d := cmp.Diff(want, all(t, b, q), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (- source, + copy):\n%s", what, d)
	}
}

func TestCopy(t *testing.T) {
	from, to := open(t, nil), open(t, nil)
	fill(t, from)
	n, err := Copy(t.Context(), from, to)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Counts{store.Flows: 30, store.Losses: 30, store.Ports: 30, store.Traces: 30, store.Counters: 30, store.Diagnoses: 30, store.Incidents: 9}); !cmp.Equal(want, n) {
		t.Errorf("copied %v; want %v", n, want)
	}
	same(t, "flows", from.Flows, to.Flows, record.Query{})
	same(t, "losses", from.Losses, to.Losses, record.Query{})
	same(t, "ports", from.Ports, to.Ports, record.Query{})
	same(t, "traces", from.Traces, to.Traces, record.Query{})
	same(t, "counters", from.Counters, to.Counters, record.Query{})
	same(t, "diagnoses", from.Diagnoses, to.Diagnoses, record.Query{})
	same(t, "incidents", from.Incidents, to.Incidents, record.Query{})
	for _, step := range []time.Duration{time.Second, time.Minute} {
		same(t, "port steps", from.Ports, to.Ports, record.Query{Step: step})
		same(t, "counter steps", from.Counters, to.Counters, record.Query{Step: step})
	}
	got, err := to.IncidentActions(t.Context(), "", 10)
	if err != nil || len(got) != 1 {
		t.Errorf("actions %+v, %v; want one", got, err)
	}
	if _, err := Copy(t.Context(), from, to); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a second copy = %v; want ErrNotEmpty", err)
	}
}

// TestCopyOldSteps copies a store whose records are gone, while the sums of their steps
// stay: seconds for longer than records, minutes for longer than seconds.
func TestCopyOldSteps(t *testing.T) {
	keep := store.Retention{
		store.Ports: time.Hour, store.PortSeconds: 2 * time.Hour, store.Counters: time.Hour, store.CounterSeconds: 2 * time.Hour,
	}
	from, to := open(t, keep), open(t, keep)
	for h := range 4 {
		at := base.Add(time.Duration(h) * time.Hour)
		b := &record.Batch{}
		for i := range 10 {
			b.Ports = append(b.Ports, record.PortSample{Time: at.Add(time.Duration(i) * 300 * time.Millisecond), Node: "e1", Port: 1, Queue: 100, Samples: 1})
			b.Counters = append(b.Counters, record.Counter{Time: at.Add(time.Duration(i) * 300 * time.Millisecond), Name: "c", Packets: 5})
		}
		if err := from.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	now := base.Add(3*time.Hour + 30*time.Minute)
	maintain(t, from, now)
	if _, err := Copy(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	maintain(t, to, now)
	same(t, "ports", from.Ports, to.Ports, record.Query{})
	for _, step := range []time.Duration{time.Second, time.Minute} {
		same(t, "port steps", from.Ports, to.Ports, record.Query{Step: step})
		same(t, "counter steps", from.Counters, to.Counters, record.Query{Step: step})
	}
}

func maintain(t *testing.T, s *embedded.Store, now time.Time) {
	t.Helper()
	if _, err := s.Maintain(context.WithoutCancel(t.Context()), now); err != nil {
		t.Fatal(err)
	}
}
