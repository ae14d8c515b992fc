package embedded_test

import (
	"context"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
)

// portBatch has a sample of each of n ports.
func portBatch(at time.Time, n int) *record.Batch {
	b := &record.Batch{}
	for i := range n {
		b.Ports = append(b.Ports, record.PortSample{Time: at, Node: "e1", Port: model.PortID(i), Queue: 10, Samples: 1})
	}
	return b
}

func rowsOf(t *testing.T, s *embedded.Store, kind store.Kind) uint64 {
	t.Helper()
	info, err := s.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range info.Kinds {
		if k.Kind == kind {
			return k.Rows
		}
	}
	t.Fatalf("no kind %s", kind)
	return 0
}

// TestRollupsHaveOneRowPerStep: after maintenance each port has one row for each
// minute and each second, also for the present ones and for late samples.
func TestRollupsHaveOneRowPerStep(t *testing.T) {
	s := fresh(t, testConfig())
	const ports, batches = 80, 40
	maintain := func(at time.Time) {
		t.Helper()
		if _, err := s.Maintain(context.Background(), at); err != nil {
			t.Fatal(err)
		}
	}
	for i := range batches {
		mustAppend(t, s, portBatch(base.Add(time.Duration(i)*100*time.Millisecond), ports))
	}
	now := base.Add(batches * 100 * time.Millisecond)
	maintain(now)
	if minutes, seconds := rowsOf(t, s, store.PortMinutes), rowsOf(t, s, store.PortSeconds); minutes != ports || seconds != 4*ports {
		t.Errorf("%d rows of a minute and %d of 4 seconds; want one per port: %d and %d", minutes, seconds, ports, 4*ports)
	}
	for range 3 {
		mustAppend(t, s, portBatch(base.Add(time.Second), ports))                 // late
		mustAppend(t, s, portBatch(base.Add(time.Minute), ports))                 // the next minute
		mustAppend(t, s, portBatch(base.Add(-time.Hour), ports))                  // a clock that is behind
		mustAppend(t, s, &record.Batch{Counters: []record.Counter{{Time: base}}}) // another rollup
		maintain(now.Add(time.Minute))
	}
	if minutes, seconds := rowsOf(t, s, store.PortMinutes), rowsOf(t, s, store.PortSeconds); minutes != 3*ports || seconds != 6*ports {
		t.Errorf("%d rows of 3 minutes and %d of 6 seconds; want one per port: %d and %d", minutes, seconds, 3*ports, 6*ports)
	}
	steps, err := s.Ports(context.Background(), record.Query{Node: "e1", Port: 7, Step: time.Minute})
	if err != nil || len(steps.Items) != 3 || steps.Items[1].Samples != batches+3 || steps.Items[1].Queue != 10 {
		t.Errorf("minutes of a port: %+v, %v; want %d samples in the second", steps.Items, err, batches+3)
	}
}

// TestRollupsMergeWithoutMaintenance: between maintenance runs, too, a rollup has few
// rows for each series and step.
func TestRollupsMergeWithoutMaintenance(t *testing.T) {
	s := fresh(t, testConfig())
	const ports, batches = 2000, 30
	most := uint64(0)
	for i := range batches {
		mustAppend(t, s, portBatch(base.Add(time.Duration(i)*time.Millisecond), ports))
		most = max(most, rowsOf(t, s, store.PortMinutes))
	}
	if want := uint64(ports * (8 + 2)); most > want {
		t.Errorf("up to %d rows of %d ports; want at most %d", most, ports, want)
	}
	steps, err := s.Ports(context.Background(), record.Query{Node: "e1", Port: 7, Step: time.Minute})
	if err != nil || len(steps.Items) != 1 || steps.Items[0].Samples != batches {
		t.Errorf("minutes of a port: %+v, %v; want %d samples", steps.Items, err, batches)
	}
}
