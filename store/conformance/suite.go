package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// testReference runs the same batches, maintenance and queries on the store and the
// reference.
func testReference(t *testing.T, open Open) {
	rapid.Check(t, func(rt *rapid.T) {
		keep := store.Retention{}
		for _, kind := range store.Kinds() {
			if rapid.Bool().Draw(rt, "kept "+string(kind)) {
				keep[kind] = time.Duration(rapid.IntRange(1, 600).Draw(rt, "age")) * time.Second
			}
		}
		s, reference := open(t, keep), &Reference{Retention: keep}
		defer closed(t, s)
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			b := batches.Draw(rt, "batch")
			if err := s.Append(context.Background(), b); err != nil {
				rt.Fatalf("Append: %v", err)
			}
			if err := reference.Append(context.Background(), b); err != nil {
				rt.Fatal(err)
			}
			if rapid.IntRange(0, 3).Draw(rt, "maintain") == 0 {
				maintainBoth(rt, s, reference, times.Draw(rt, "now"))
			}
		}
		compare(rt, "flows", s.Flows, reference.Flows, ended(rt, queries(rt, true, false, true, false, nil)))
		compare(rt, "losses", s.Losses, reference.Losses, ended(rt, queries(rt, true, false, true, false, nil)))
		compare(rt, "ports", s.Ports, reference.Ports, queries(rt, true, true, false, true, nil))
		compare(rt, "ports", s.Ports, reference.Ports, queries(rt, true, true, false, true, nil))
		traces := queries(rt, true, false, true, false, rapid.Map(rapid.SampledFrom([]uint64{0, 1 << 63, math.MaxUint64}),
			func(id uint64) string { return strconv.FormatUint(id, 10) }))
		if rapid.IntRange(0, 2).Draw(rt, "end") == 0 {
			traces.End = names.Draw(rt, "end")
		}
		if rapid.IntRange(0, 3).Draw(rt, "why") == 0 {
			traces.Why = names.Draw(rt, "why")
		}
		if rapid.IntRange(0, 3).Draw(rt, "latency") == 0 {
			traces.MinLatency = max(span(rt, "latency"), 0)
		}
		compare(rt, "traces", s.Traces, reference.Traces, traces)
		compare(rt, "counters", s.Counters, reference.Counters, queries(rt, false, false, false, true, names))
		compare(rt, "counters", s.Counters, reference.Counters, queries(rt, false, false, false, true, names))
		compare(rt, "diagnoses", s.Diagnoses, reference.Diagnoses, queries(rt, true, true, true, false, names))
		compare(rt, "incidents", s.Incidents, reference.Incidents, queries(rt, true, false, false, false, rapid.SampledFrom([]string{"i1", "i2", "i99"})))
	})
}

func maintainBoth(t *rapid.T, s Store, reference *Reference, now time.Time) {
	got, err := s.Maintain(context.Background(), now)
	if err != nil {
		t.Fatalf("Maintain: %v", err)
	}
	want, _ := reference.Maintain(context.Background(), now)
	for kind, n := range want.Removed {
		switch kind {
		case store.PortSeconds, store.PortMinutes, store.CounterSeconds, store.CounterMinutes:
			continue // the number of rows of a step is up to the store
		}
		if got.Removed[kind] != n {
			t.Fatalf("Maintain(%v) removes %+v of %s; want %+v", now, got.Removed[kind], kind, n)
		}
	}
}

// compare walks the pages of the store, and queries the reference for all at once.
func compare[T any](t *rapid.T, kind string, query, reference queryFunc[T], q record.Query) {
	got, err := walk(query, q)
	if err != nil {
		t.Fatalf("%s of %+v: %v", kind, q, err)
	}
	limit := q.Limit
	q.Limit = 0
	want, err := reference(context.Background(), q)
	if err != nil {
		t.Fatalf("reference, %s of %+v: %v", kind, q, err)
	}
	if d := cmp.Diff(want.Items, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s of %+v in pages of %d (- want, + got):\n%s", kind, q, limit, d)
	}
}

// testWalk reads pages while records of all times arrive: every record that existed
// is returned once, none that arrived later.
func testWalk(t *testing.T, s Store) {
	const before = 500
	sample := func(i int) record.PortSample {
		return record.PortSample{Time: base.Add(time.Duration(i%7) * time.Millisecond), Node: "s", Port: 1, Queue: model.Bytes(i)}
	}
	b := &record.Batch{}
	for i := range before {
		b.Ports = append(b.Ports, sample(i))
	}
	mustAppend(t, s, b)

	first, err := s.Ports(context.Background(), record.Query{Limit: 20})
	if err != nil || first.Next == "" {
		t.Fatalf("first page: next %q, %v; want a next", first.Next, err)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		for i := before; ; i += 3 {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.Append(context.Background(), &record.Batch{Ports: []record.PortSample{sample(i), sample(i + 1), sample(i + 2)}}); err != nil {
				done <- err
				return
			}
		}
	}()
	rest, err := walk(s.Ports, record.Query{Limit: 20, After: first.Next})
	close(stop)
	if err := <-done; err != nil {
		t.Fatalf("Append during a walk: %v", err)
	}
	if err != nil {
		t.Fatalf("walk: %v", err)
	}
	seen := map[model.Bytes]int{}
	for _, r := range append(first.Items, rest...) {
		seen[r.Queue]++
	}
	for i := range model.Bytes(before) {
		if seen[i] != 1 {
			t.Errorf("record %d is returned %d times; want once", i, seen[i])
		}
	}
	if len(seen) != before {
		t.Errorf("the walk returns %d records; want the %d that existed when it began", len(seen), before)
	}
}

// testAtomicBatches appends batches with invalid records.
func testAtomicBatches(t *testing.T, s Store) {
	good := record.FlowSlot{Time: base, Src: "h1"}
	for name, bad := range map[string]record.Batch{
		"no time":          {Flows: []record.FlowSlot{good, {}}},
		"no time in a hop": {Flows: []record.FlowSlot{good}, Traces: []record.Trace{{Time: base, Hops: []record.TraceHop{{}}}}},
		"text":             {Flows: []record.FlowSlot{good}, Losses: []record.Loss{{Time: base, From: "\xff"}}},
		"number":           {Flows: []record.FlowSlot{good}, Ports: []record.PortSample{{Time: base, Paused: math.NaN()}}},
		"body":             {Flows: []record.FlowSlot{good}, Diagnoses: []record.Diagnosis{{Time: base, Body: []byte("{")}}},
		"no id":            {Flows: []record.FlowSlot{good}, Incidents: []record.Incident{{Begin: base, Updated: base}}},
		"families":         {Flows: []record.FlowSlot{good, {Time: base, Flow: model.FlowKey{SrcPort: 1}}}},
	} {
		if err := s.Append(context.Background(), &bad); !errors.Is(err, store.ErrRecord) {
			t.Errorf("Append of a batch with bad %s = %v; want ErrRecord", name, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Append(ended, &record.Batch{Flows: []record.FlowSlot{good}}); err == nil {
		t.Error("Append with a context that ended returns no error")
	}
	if p, err := s.Flows(context.Background(), record.Query{}); err != nil || len(p.Items) != 0 {
		t.Errorf("after refused batches the store has %d flows, %v; want none", len(p.Items), err)
	}
}

func testReplace(t *testing.T, s Store) {
	at := func(s int) time.Time { return base.Add(time.Duration(s) * time.Second) }
	mustAppend(t, s, &record.Batch{Incidents: []record.Incident{
		{ID: "a", Begin: at(0), Updated: at(1), Cause: "first"},
		{ID: "b", Begin: at(0), Updated: at(1)},
		{ID: "a", Begin: at(0), Updated: at(2), Cause: "second"},
	}})
	mustAppend(t, s, &record.Batch{Incidents: []record.Incident{{ID: "a", Begin: at(0), Updated: at(3), End: at(3), Cause: "third"}}})
	got, err := walk(s.Incidents, record.Query{Limit: 1})
	want := []record.Incident{{ID: "b", Begin: at(0), Updated: at(1)}, {ID: "a", Begin: at(0), Updated: at(3), End: at(3), Cause: "third"}}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || d != "" {
		t.Errorf("incidents, %v (- want, + got):\n%s", err, d)
	}
}

// testConcurrent runs writers, readers and maintenance concurrently.
func testConcurrent(t *testing.T, s Store) {
	const writers, each = 3, 20
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				at := base.Add(time.Duration(i) * time.Second)
				err := s.Append(context.Background(), &record.Batch{
					Ports:     []record.PortSample{{Time: at, Node: fmt.Sprint(w), Port: 1, Samples: 1}},
					Incidents: []record.Incident{{ID: fmt.Sprint(i), Begin: at, Updated: at}},
				})
				if err != nil {
					t.Errorf("Append: %v", err)
				}
			}
		})
		all.Go(func() {
			for range each {
				if _, err := walk(s.Ports, record.Query{Step: time.Minute}); err != nil {
					t.Errorf("Ports: %v", err)
				}
			}
		})
	}
	all.Go(func() {
		for range 3 {
			if _, err := s.Maintain(context.Background(), base.Add(time.Hour)); err != nil {
				t.Errorf("Maintain: %v", err)
			}
		}
	})
	all.Wait()
	ports, err := walk(s.Ports, record.Query{})
	if err != nil || len(ports) != writers*each {
		t.Errorf("%d samples, %v; want %d", len(ports), err, writers*each)
	}
	incidents, err := walk(s.Incidents, record.Query{})
	if err != nil || len(incidents) != each {
		t.Errorf("%d incidents, %v; want %d", len(incidents), err, each)
	}
	var n uint64
	steps, err := walk(s.Ports, record.Query{Step: time.Minute})
	for _, p := range steps {
		n += p.Samples
	}
	if err != nil || n != writers*each {
		t.Errorf("a rollup of %d samples, %v; want %d", n, err, writers*each)
	}
}

// testRetention removes records of one age, while rollups stay for longer.
func testRetention(t *testing.T, open Open) {
	s := open(t, store.Retention{store.Ports: time.Hour, store.PortSeconds: 2 * time.Hour, store.Incidents: time.Hour})
	defer closed(t, s)
	at := func(h time.Duration) time.Time { return base.Add(h * time.Hour) }
	mustAppend(t, s, &record.Batch{
		Ports: []record.PortSample{{Time: at(0), Node: "s", Port: 1}, {Time: at(1), Node: "s", Port: 1}, {Time: at(2), Node: "s", Port: 1}},
		Incidents: []record.Incident{
			{ID: "old", Begin: at(0), Updated: at(0)},
			{ID: "old, but updated later", Begin: at(0), Updated: at(2)},
		},
	})
	up, err := s.Maintain(context.Background(), at(3).Add(-time.Nanosecond))
	if err != nil {
		t.Fatalf("Maintain: %v", err)
	}
	if got, want := up.Removed[store.Ports], (store.Removal{Age: 2}); got != want {
		t.Errorf("Maintain removes %+v samples; want %+v", got, want)
	}
	for step, want := range map[time.Duration]int{0: 1, time.Second: 2, time.Minute: 3} {
		if got, err := walk(s.Ports, record.Query{Step: step}); err != nil || len(got) != want {
			t.Errorf("%d rows in steps of %v stay, %v; want %d", len(got), step, err, want)
		}
	}
	if got, err := walk(s.Incidents, record.Query{}); err != nil || len(got) != 1 {
		t.Errorf("incidents %+v stay, %v; want one", got, err)
	}
}

func testClosed(t *testing.T, open Open) {
	s := open(t, nil)
	closed(t, s)
	if err := s.Append(context.Background(), &record.Batch{Ports: []record.PortSample{{Time: base}}}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Append = %v; want ErrClosed", err)
	}
	if _, err := s.Flows(context.Background(), record.Query{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Flows = %v; want ErrClosed", err)
	}
	if _, err := s.Maintain(context.Background(), base); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Maintain = %v; want ErrClosed", err)
	}
	if err := s.Close(); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Close = %v; want ErrClosed", err)
	}
}
