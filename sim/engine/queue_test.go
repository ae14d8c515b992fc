package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPopOrder(t *testing.T) {
	p := &pair{t: t}
	for _, at := range []Time{Second, 0, 5, 5, Forever, 5, Microsecond, 0, Forever, Second - 1} {
		p.push(at)
	}
	p.drain()
}

func TestPopLimit(t *testing.T) {
	p := &pair{t: t}
	p.push(100 * Nanosecond)
	p.push(10 * Millisecond)
	p.pop(Millisecond)
	if p.pop(10*Millisecond - 1) {
		t.Fatal("Pop(9.99…ms) = true; the only event is at 10ms")
	}
	// Time stands at 100 ns still: both may come before what Pop looked at.
	p.push(2 * Millisecond)
	p.push(100 * Nanosecond)
	if p.pop(100*Nanosecond - 1) {
		t.Fatal("Pop before the present = true")
	}
	p.pop(100 * Nanosecond)
	p.next()
	p.push(Millisecond) // earlier than what Next looked at
	p.next()
	p.drain()
	if p.pop(Forever) {
		t.Fatal("Pop of an empty queue = true")
	}
	p.push(p.now)
	p.drain()
}

// TestPushWhilePopping pushes for the very time that is being popped, from an
// event of that time: the newcomers must leave last.
func TestPushWhilePopping(t *testing.T) {
	p := &pair{t: t}
	for i := range Time(200) {
		p.push(Microsecond + i%3)
	}
	for range 300 {
		p.pop(Forever)
		p.push(p.now)
		p.push(p.now + 1)
	}
	p.drain()
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
			var q Queue[event]
			q.Push(tc.last, event{})
			q.Pop(Forever)
			q.Push(tc.at, event{})
		})
	}
}

// delays are spans that a simulator asks for, and those that lie where this
// queue has borders.
func delays() *rapid.Generator[Time] {
	return rapid.OneOf(
		rapid.Just(Time(0)),
		rapid.Custom(func(t *rapid.T) Time { return Time(rapid.IntRange(0, 100).Draw(t, "ps")) }),
		rapid.Custom(func(t *rapid.T) Time { return Time(rapid.IntRange(5_000, 80_000).Draw(t, "serialization")) }),
		rapid.SampledFrom([]Time{Microsecond, 4 * Microsecond, 50 * Microsecond, 300 * Microsecond, 900 * Microsecond, 10 * Millisecond}),
		rapid.Custom(func(t *rapid.T) Time {
			return Time(1)<<rapid.IntRange(0, 61).Draw(t, "bit") + Time(rapid.IntRange(-1, 1).Draw(t, "off"))
		}),
		rapid.Custom(func(t *rapid.T) Time { return Time(rapid.Int64Range(0, int64(10*Second)).Draw(t, "gap")) }),
	)
}

// later adds a delay, up to Forever.
func later(now, d Time) Time {
	if d > Forever-now {
		return Forever
	}
	return now + d
}

func TestQueueMatchesTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{t: t}
		delay := delays()
		count := rapid.IntRange(1, 300)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) { p.push(later(p.now, delay.Draw(t, "delay"))) },
			"push a burst of one time": func(t *rapid.T) {
				at := later(p.now, delay.Draw(t, "delay"))
				for range count.Draw(t, "count") {
					p.push(at)
				}
			},
			"push a ramp": func(t *rapid.T) {
				at, step := p.now, delay.Draw(t, "step")
				for range count.Draw(t, "count") {
					at = later(at, step)
					p.push(at)
				}
			},
			"push a ramp downwards": func(t *rapid.T) {
				n, step := count.Draw(t, "count"), delay.Draw(t, "step")%Second
				for i := n; i >= 0; i-- {
					p.push(later(p.now, Time(i)*step))
				}
			},
			"push a cloud": func(t *rapid.T) {
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				span := max(1, delay.Draw(t, "span"))
				for range count.Draw(t, "count") {
					p.push(later(p.now, Time(rng.Int64N(int64(span)))))
				}
			},
			"pop": func(t *rapid.T) {
				for range count.Draw(t, "count") {
					p.pop(Forever)
				}
			},
			"pop up to a limit": func(t *rapid.T) {
				limit := later(p.now, delay.Draw(t, "delay"))
				for range count.Draw(t, "count") {
					if !p.pop(limit) {
						break
					}
				}
			},
			"pop just before and just at the next": func(t *rapid.T) {
				at, ok := p.next()
				if p.pop(at - 1) {
					t.Fatalf("Pop(%v) = true; Next was %v", at-1, at)
				}
				if p.pop(at) != ok {
					t.Fatalf("Pop(%v) = %v; Next was %v, %v", at, !ok, at, ok)
				}
			},
			"hold": func(t *rapid.T) {
				ds := rapid.SliceOfN(delay, 1, 8).Draw(t, "delays")
				for i := range count.Draw(t, "count") {
					p.pop(Forever)
					p.push(later(p.now, ds[i%len(ds)]))
				}
			},
			"": func(t *rapid.T) { p.next() },
		})
		p.drain()
	})
}

// FuzzQueue reads its input as operations: a byte that chooses one, a byte for
// the size of a delay and a byte for its detail.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 20, 7, 1, 20, 7, 2, 0, 0})
	f.Add([]byte{3, 14, 255, 3, 0, 255, 6, 255, 0, 4, 16, 3, 5, 12, 1})
	f.Add([]byte(strings.Repeat("\x03\x10\x40\x04\x0c\x03\x06\x20\x00\x07\x00\x00", 8)))
	f.Fuzz(func(t *testing.T, in []byte) {
		p := &pair{t: t}
		for ; len(in) >= 3; in = in[3:] {
			n := int(in[2]) + 1
			delay := Time(in[2]) << (in[1] % 55)
			switch in[0] % 8 {
			case 0:
				p.push(later(p.now, delay))
			case 1:
				p.pop(Forever)
			case 2:
				p.pop(later(p.now, delay))
			case 3: // a burst of equal times
				for range n {
					p.push(later(p.now, 1<<(in[1]%62)))
				}
			case 4: // a scattered burst
				x := uint64(n)
				for range n {
					x = x*6364136223846793005 + 1442695040888963407
					p.push(later(p.now, Time(x>>1>>(in[1]%63))))
				}
			case 5:
				p.hold(n, func() Time { return min(1<<(in[1]%62), Forever-p.now) })
			case 6:
				for range n {
					p.pop(Forever)
				}
			case 7:
				p.next()
			}
		}
		p.drain()
	})
}

// TestLookingChangesNothing replays one run with and without calls that only
// look: the events must leave in the same order.
func TestLookingChangesNothing(t *testing.T) {
	for _, d := range distributions {
		t.Run(d.name, func(t *testing.T) {
			var plain, looked Queue[event]
			delay := d.delays(1)
			both := func(at Time, id int) {
				plain.Push(at, event{id: int64(id)})
				looked.Push(at, event{id: int64(id)})
			}
			for i := range 500 {
				both(delay[i], i)
			}
			for i := 500; i < 20_000; i++ {
				next, _ := looked.Next()
				if at, _, ok := looked.Pop(next - 1); ok {
					t.Fatalf("Pop(%v) = %v, true; Next was %v", next-1, at, next)
				}
				at, want, _ := plain.Pop(Forever)
				gotAt, got, _ := looked.Pop(next)
				if at != gotAt || got != want {
					t.Fatalf("event %d after looking = %d at %v; want %d at %v", i, got.id, gotAt, want.id, at)
				}
				both(at+delay[i], i)
			}
		})
	}
}
