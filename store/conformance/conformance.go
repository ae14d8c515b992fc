package conformance

import (
	"context"
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// Store is the interface that a controller needs.
type Store interface {
	Append(ctx context.Context, b *record.Batch) error
	Flows(ctx context.Context, q record.Query) (record.Page[record.FlowSlot], error)
	Losses(ctx context.Context, q record.Query) (record.Page[record.Loss], error)
	Ports(ctx context.Context, q record.Query) (record.Page[record.PortSample], error)
	Traces(ctx context.Context, q record.Query) (record.Page[record.Trace], error)
	Counters(ctx context.Context, q record.Query) (record.Page[record.Counter], error)
	Diagnoses(ctx context.Context, q record.Query) (record.Page[record.Diagnosis], error)
	Incidents(ctx context.Context, q record.Query) (record.Page[record.Incident], error)
	FlowSums(ctx context.Context, q record.FlowSumQuery) (record.FlowSums, error)
	FlowGroups(ctx context.Context, q record.FlowGroupQuery) (record.FlowGroups, error)
	Maintain(ctx context.Context, now time.Time) (store.MaintenanceResult, error)
	Close() error
}

// Open opens an empty store with that retention and pages of at most MaxPage
// records. The suite closes it.
type Open func(t testing.TB, keep store.Retention) Store

// MaxPage is the page limit of the stores that are tested.
const MaxPage = 50

// Run tests a store.
func Run(t *testing.T, open Open) {
	t.Run("equals the reference", func(t *testing.T) {
		fewerChecks(t)
		testReference(t, open)
	})
	t.Run("sums of flows", func(t *testing.T) {
		fewerChecks(t)
		testFlowSums(t, open)
	})
	t.Run("sums of flows of seconds", func(t *testing.T) {
		fewerChecks(t)
		testFlowSumsOfSeconds(t, open)
	})
	for name, test := range map[string]func(*testing.T, Store){
		"a walk under appends":    testWalk,
		"batches are atomic":      testAtomicBatches,
		"an incident is replaced": testReplace,
		"sums of a rollup":        testRollup,
		"sums at their limits":    testRollupLimits,
		"hostile queries":         testHostile,
		"hostile text":            testHostileText,
		"concurrent use":          testConcurrent,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, nil)
			defer closed(t, s)
			test(t, s)
		})
	}
	t.Run("instants at the edges", func(t *testing.T) {
		s := open(t, nil)
		defer closed(t, s)
		testInstants(t, s)
	})
	t.Run("retention", func(t *testing.T) { testRetention(t, open) })
	t.Run("after close", func(t *testing.T) { testClosed(t, open) })
}

// Checks is how often the suite compares a store with the reference, unless
// -rapid.checks says so. A store that takes long to open may lower it.
var Checks = 20

// fewerChecks lowers the number of rapid's checks unless it was set: each opens a
// store.
func fewerChecks(t *testing.T) {
	const name = "rapid.checks"
	f := flag.Lookup(name)
	if f.Value.String() != f.DefValue {
		return
	}
	n := Checks
	if testing.Short() {
		n = min(n, 8)
	}
	if err := flag.Set(name, strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(name, f.DefValue) })
}

func closed(t testing.TB, s Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func mustAppend(t testing.TB, s Store, b *record.Batch) {
	t.Helper()
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

// queryFunc is one query method of a store.
type queryFunc[T any] func(ctx context.Context, q record.Query) (record.Page[T], error)

// walk reads all pages.
func walk[T any](query queryFunc[T], q record.Query) (all []T, err error) {
	for {
		page, err := query(context.Background(), q)
		all = append(all, page.Items...)
		if err != nil || page.Next == "" {
			return all, err
		}
		q.After = page.Next
	}
}
