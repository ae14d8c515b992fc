package store

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

func TestCursorRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Cursor{
			Time: rapid.Int64().Draw(t, "time"), Seq: rapid.Int64().Draw(t, "seq"), Bound: rapid.Int64().Draw(t, "bound"),
			Name: rapid.String().Draw(t, "name"), Port: model.PortID(rapid.Uint16().Draw(t, "port")),
		}
		key, q := []byte("key"), record.Query{Node: "e1", Limit: 3}
		q.After = c.Seal(key, Ports, q)
		q.Limit = 5 // pages may change their length
		if got, err := Unseal(key, Ports, q); err != nil || got != c {
			t.Fatalf("Unseal(Seal(%+v)) = %+v, %v", c, got, err)
		}
		for what, bad := range map[string]func() (Cursor, error){
			"another key":   func() (Cursor, error) { return Unseal([]byte("kez"), Ports, q) },
			"another kind":  func() (Cursor, error) { return Unseal(key, Flows, q) },
			"another query": func() (Cursor, error) { q := q; q.Node = "e2"; return Unseal(key, Ports, q) },
		} {
			if got, err := bad(); !errors.Is(err, ErrQuery) {
				t.Fatalf("Unseal with %s = %+v, %v; want ErrQuery", what, got, err)
			}
		}
	})
}

// FuzzUnseal checks that a cursor cannot be made without the key.
func FuzzUnseal(f *testing.F) {
	f.Add(Cursor{Time: 1, Name: "e1"}.Seal([]byte("another key"), Ports, record.Query{}))
	f.Fuzz(func(t *testing.T, after string) {
		if c, err := Unseal([]byte("key"), Ports, record.Query{After: after}); !errors.Is(err, ErrQuery) {
			t.Fatalf("Unseal(%q) = %+v, %v; want ErrQuery", after, c, err)
		}
	})
}

func TestWidth(t *testing.T) {
	for step, want := range map[time.Duration][2]time.Duration{
		1:                     {Second, Second},
		Second:                {Second, Second},
		Second + 1:            {Second, 2 * Second},
		59*Second + 1:         {Second, Minute},
		Minute:                {Minute, Minute},
		90 * Second:           {Minute, 2 * Minute},
		24*time.Hour - Second: {Minute, 24 * time.Hour},
	} {
		if rollup, width := StepWidth(step); rollup != want[0] || width != want[1] {
			t.Errorf("Width(%v) = %v, %v; want %v, %v", step, rollup, width, want[0], want[1])
		}
	}
}

func TestFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(math.MinInt64/2, math.MaxInt64/2).Draw(t, "ns")
		width := time.Duration(rapid.Int64Range(1, int64(maxStep)).Draw(t, "width"))
		got := FloorStep(ns, width)
		if got > ns || ns-got >= int64(width) || got%int64(width) != 0 {
			t.Fatalf("Floor(%d, %d) = %d; want the multiple at or just below", ns, width, got)
		}
	})
	if got := FloorStep(math.MinInt64, time.Hour); got != math.MinInt64 {
		t.Errorf("Floor of the least = %d; want it to stay", got)
	}
}

func TestRange(t *testing.T) {
	at := time.Unix(0, 100)
	for name, tc := range map[string]struct {
		q           record.Query
		first, last int64
	}{
		"all":       {record.Query{}, math.MinInt64, math.MaxInt64},
		"both":      {record.Query{From: at, To: at.Add(10)}, 100, 109},
		"none":      {record.Query{From: at, To: at}, 100, 99},
		"year 9999": {record.Query{To: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, math.MinInt64, math.MaxInt64 - 1},
		"year 1":    {record.Query{To: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)}, 1, 0},
	} {
		if first, last := TimeRange(tc.q); first != tc.first || last != tc.last {
			t.Errorf("%s: Range = %d, %d; want %d, %d", name, first, last, tc.first, tc.last)
		}
	}
}

func TestRetentionCheck(t *testing.T) {
	if err := DefaultRetention().Check(); err != nil {
		t.Errorf("the default: %v", err)
	}
	for _, bad := range []Retention{{"tables": time.Hour}, {Flows: 0}, {Flows: -1}} {
		if err := bad.Check(); err == nil {
			t.Errorf("Check(%v) = nil; want an error", bad)
		}
	}
}
