package engine

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// reference is the obvious queue: a list that is sorted after every push.
type reference []pushed

type pushed struct {
	at   Time
	from Origin
	id   int
}

func (w *reference) push(p pushed) {
	*w = append(*w, p)
	slices.SortStableFunc(*w, func(a, b pushed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.from.Asked, b.from.Asked), cmp.Compare(a.from.By, b.from.By))
	})
}

func (w *reference) pop(limit Time) (at Time, id int, ok bool) {
	if len(*w) == 0 || (*w)[0].at > limit {
		return 0, 0, false
	}
	first := (*w)[0]
	*w = (*w)[1:]
	return first.at, first.id, true
}

// TestQueueMatchesReference pushes and pops at random, with many equal times and
// origins.
func TestQueueMatchesReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var w reference
		var now Time
		id := 0
		delay := rapid.SampledFrom([]Time{0, 0, 1, 1, 2, Nanosecond, Microsecond, 10 * Millisecond, Second, Forever / 4})
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				at := min(now+delay.Draw(t, "delay"), Forever/2)
				for range rapid.IntRange(1, 20).Draw(t, "count") {
					id++
					from := Origin{min(now, rapid.SampledFrom([]Time{0, 1, Forever}).Draw(t, "asked")), rapid.Int32Range(-1, 1).Draw(t, "by")}
					q.Push(at, from, id)
					w.push(pushed{at, from, id})
				}
			},
			"pop": func(t *rapid.T) {
				limit := min(now+delay.Draw(t, "limit"), Forever/2)
				for range rapid.IntRange(1, 20).Draw(t, "count") {
					at, got, ok := q.Pop(limit)
					wantAt, want, wantOK := w.pop(limit)
					if at != wantAt || got != want || ok != wantOK {
						t.Fatalf("Pop(%v) = %v, %d, %v; want %v, %d, %v", limit, at, got, ok, wantAt, want, wantOK)
					}
					if ok {
						now = at
					}
				}
			},
			"": func(t *rapid.T) {
				at, ok := q.Next()
				if q.Len() != len(w) || ok != (len(w) > 0) || ok && at != w[0].at {
					t.Fatalf("Len() = %d, Next() = %v, %v; want %d events, the first of %v", q.Len(), at, ok, len(w), w)
				}
			},
		})
	})
}

// TestPopLimit: an event that is not due stays, and others may still come before
// it.
func TestPopLimit(t *testing.T) {
	var q Queue[string]
	q.Push(10*Millisecond, Origin{}, "late")
	if at, ev, ok := q.Pop(10*Millisecond - 1); ok {
		t.Fatalf("Pop before the event = %v, %s, true; want false", at, ev)
	}
	q.Push(Millisecond, Origin{}, "early")
	q.Push(Forever, Origin{}, "never")
	for _, want := range []string{"early", "late", "never"} {
		if _, ev, ok := q.Pop(Forever); !ok || ev != want {
			t.Fatalf("Pop = %s, %v; want %s", ev, ok, want)
		}
	}
}

func TestPushIntoThePastPanics(t *testing.T) {
	for name, tc := range map[string]struct {
		last, at Time
		want     string
	}{
		"before the last event":     {Microsecond, Microsecond - 1, "engine: event pushed for 999.999ns, before the last popped at 1µs"},
		"before the start of a run": {0, -1, "engine: event pushed for -1ps, before the last popped at 0ps"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); got != tc.want {
					t.Errorf("Push(%v) after Pop at %v panics with %q; want %q", tc.at, tc.last, got, tc.want)
				}
			}()
			var q Queue[int]
			q.Push(tc.last, Origin{}, 0)
			q.Pop(Forever)
			q.Push(tc.at, Origin{}, 0)
		})
	}
}

func TestQueueAllocs(t *testing.T) {
	var q Queue[int]
	turn := func() {
		for i := range 100 {
			q.Push(q.last+Time(i*7%50), Origin{}, i)
		}
		for q.Len() > 0 {
			q.Pop(Forever)
		}
	}
	if n := testing.AllocsPerRun(10, turn); n != 0 {
		t.Errorf("100 events allocate %v times; want 0", n)
	}
}

func BenchmarkQueue(b *testing.B) {
	for _, pending := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
			var q Queue[func()]
			for i := range pending {
				q.Push(Time(i), Origin{}, nil)
			}
			for b.Loop() {
				at, _, _ := q.Pop(Forever)
				q.Push(at+Time(pending), Origin{}, nil)
			}
		})
	}
}
