package conformance

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// edges are instants around which clocks, calendars and databases disagree.
var edges = []time.Time{
	{},
	time.Unix(0, math.MinInt64), time.Unix(0, 0), time.Unix(0, math.MaxInt64),
	time.Date(1677, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC),
	time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2262, 4, 11, 0, 0, 0, 0, time.UTC),
	time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(-290308, 1, 1, 0, 0, 0, 0, time.UTC),
}

// testInstants appends records of every kind at instants around the edges: a store
// keeps and returns exactly those that CheckBatch accepts. One that CheckBatch
// accepts and the store refuses would cost all records of its batch.
func testInstants(t *testing.T, s Store) {
	ctx, kept := context.Background(), 0
	rapid.Check(t, func(rt *rapid.T) {
		near := rapid.SampledFrom([]time.Duration{0, 1, -1, time.Second, -time.Second, 23 * time.Hour, -23 * time.Hour, 25 * time.Hour, -25 * time.Hour})
		at := rapid.SampledFrom(edges).Draw(rt, "edge").Add(near.Draw(rt, "near"))
		zone := rapid.SampledFrom([]*time.Location{time.UTC, time.FixedZone("east", 14*3600), time.FixedZone("west", -12*3600)}).Draw(rt, "zone")
		at = at.In(zone)
		b := &record.Batch{
			Flows: []record.FlowSlot{{Time: at}}, Losses: []record.Loss{{Time: at}}, Ports: []record.PortSample{{Time: at, Node: "s"}},
			Traces:   []record.Trace{{Time: at, Hops: []record.TraceHop{{Time: at}}}},
			Counters: []record.Counter{{Time: at, Name: "c"}}, Diagnoses: []record.Diagnosis{{Time: at}},
			Incidents: []record.Incident{{ID: at.UTC().String(), Begin: at, Updated: at, End: at}},
		}
		accepted := store.CheckBatch(b) == nil
		switch err := s.Append(ctx, b); {
		case accepted && err != nil:
			rt.Fatalf("Append of records at %v = %v; want no error, as of CheckBatch", at, err)
		case !accepted && !errors.Is(err, store.ErrRecord):
			rt.Fatalf("Append of records at %v = %v; want ErrRecord", at, err)
		case !accepted:
			return
		}
		kept++
		p, err := s.Traces(ctx, record.Query{From: at, To: at.Add(1), Limit: 1})
		if err != nil || len(p.Items) != 1 || !p.Items[0].Time.Equal(at) || !p.Items[0].Hops[0].Time.Equal(at) {
			rt.Fatalf("traces at %v = %+v, %v; want one of this instant", at, p.Items, err)
		}
	})
	for _, step := range []time.Duration{0, time.Second, time.Minute} {
		if got, err := walk(s.Ports, record.Query{Step: step}); err != nil || len(got) == 0 {
			t.Errorf("%d samples in steps of %v, %v; want some", len(got), step, err)
		}
	}
	if kept == 0 {
		t.Error("no instant was accepted; the test tests nothing")
	}
}
