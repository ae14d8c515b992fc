package conformance

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// testHostile sends invalid and extreme queries: limits hold, and invalid queries
// are ErrQuery.
func testHostile(t *testing.T, s Store) {
	ctx := context.Background()
	b := &record.Batch{}
	for i := range 2 * MaxPage {
		b.Ports = append(b.Ports, record.PortSample{Time: base.Add(time.Duration(i) * time.Second), Node: "s", Port: 1})
	}
	mustAppend(t, s, b)
	page, err := s.Ports(ctx, record.Query{Limit: 1 << 40})
	if err != nil || len(page.Items) > MaxPage || page.Next == "" {
		t.Fatalf("a page of 2^40 has %d records, next %q, %v; want at most %d and a next", len(page.Items), page.Next, err, MaxPage)
	}
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, step := range []time.Duration{0, time.Second, 24 * time.Hour} {
		if got, err := walk(s.Ports, record.Query{From: year(-9999), To: year(99999), Step: step}); err != nil || len(got) == 0 {
			t.Errorf("a walk over all of time in steps of %v = %d records, %v; want some", step, len(got), err)
		}
		if got, err := walk(s.Ports, record.Query{From: year(99999), To: year(-9999), Step: step}); err != nil || len(got) != 0 {
			t.Errorf("a walk over an empty range = %d records, %v; want none", len(got), err)
		}
	}
	changed := []byte(page.Next)
	changed[len(changed)/2] ^= 1
	flow := key4("10.0.0.2:40000", "10.0.1.2:80")
	for _, q := range []record.Query{
		{After: string(changed)},
		{After: page.Next[:len(page.Next)-1]},
		{After: page.Next + "A"},
		{After: page.Next, Node: "another query"},
		{After: page.Next, Step: time.Second},
		{After: page.Next, From: base},
		{After: "' OR 1=1 --"},
		{After: "\x00\xff"},
		{Limit: -1},
		{Step: -1},
		{Step: math.MaxInt64},
		{Flow: flow},
		{Name: "ports have no name"},
		{Node: "\xff"},
	} {
		if _, err := s.Ports(ctx, q); !errors.Is(err, store.ErrQuery) {
			t.Errorf("Ports(%+v) = %v; want ErrQuery", q, err)
		}
	}
	if _, err := s.Traces(ctx, record.Query{Name: "1 OR 1=1"}); !errors.Is(err, store.ErrQuery) {
		t.Errorf("Traces by a name that is no number = %v; want ErrQuery", err)
	}
	if _, err := s.Losses(ctx, record.Query{After: page.Next}); !errors.Is(err, store.ErrQuery) {
		t.Errorf("Losses after a page of ports = %v; want ErrQuery", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Ports(ended, record.Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Ports with a context that ended = %v; want context.Canceled", err)
	}
}

// testHostileText stores and finds text of any kind.
func testHostileText(t *testing.T, s Store) {
	for _, text := range []string{"\x00", "a\x00b", "'", `"`, "\\", "%", "_", "?", "$1", "'; DROP TABLE ports; --", "\u2028", "\U0010ffff", "-", "NULL"} {
		mustAppend(t, s, &record.Batch{Ports: []record.PortSample{{Time: base, Node: text, Port: 1}}})
		got, err := walk(s.Ports, record.Query{Node: text})
		if err != nil || len(got) != 1 || got[0].Node != text {
			t.Errorf("node %q is found as %+v, %v; want it once", text, got, err)
		}
		if got, err = walk(s.Ports, record.Query{Node: text, Step: time.Second}); err != nil || len(got) != 1 || got[0].Node != text {
			t.Errorf("series of node %q is found as %+v, %v; want it once", text, got, err)
		}
	}
}
