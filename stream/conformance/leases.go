package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/stream"
)

// TestLeases tests leases. open returns those of one more member.
func TestLeases(t *testing.T, open func() stream.Leases) {
	ctx := t.Context()
	t.Run("one holder", func(t *testing.T) {
		a, b := open(), open()
		first, err := a.Acquire(ctx, "one.0", "a")
		must(t, err)
		if _, err := b.Acquire(ctx, "one.0", "b"); !errors.Is(err, stream.ErrHeld) {
			t.Errorf("Acquire of a lease that is held = %v; want ErrHeld", err)
		}
		other, err := b.Acquire(ctx, "one.1", "b")
		must(t, err)
		holders, err := b.Holders(ctx, "one.")
		must(t, err)
		if want := map[string]string{"one.0": "a", "one.1": "b"}; !maps.Equal(holders, want) {
			t.Errorf("holders %v; want %v", holders, want)
		}
		must(t, first.Release(ctx))
		next, err := b.Acquire(ctx, "one.0", "b")
		must(t, err)
		if next.Epoch() <= first.Epoch() {
			t.Errorf("epoch %d after %d", next.Epoch(), first.Epoch())
		}
		must(t, first.Release(ctx)) // has no effect on the next holder
		if _, err := a.Acquire(ctx, "one.0", "a"); !errors.Is(err, stream.ErrHeld) {
			t.Errorf("Acquire of a lease that is held again = %v; want ErrHeld", err)
		}
		must(t, next.Release(ctx))
		must(t, other.Release(ctx))
	})
	t.Run("a race has one winner", func(t *testing.T) { race(t, open) })
}

// race has members acquire and release one lease: there is one holder at a time, and
// epochs grow.
func race(t *testing.T, open func() stream.Leases) {
	const members, each = 4, 5
	var wg sync.WaitGroup
	var mu sync.Mutex
	holder, last := "", uint64(0)
	for i := range members {
		l := open()
		wg.Go(func() {
			name := fmt.Sprint("member", i)
			for n := 0; n < each; {
				lease, err := l.Acquire(t.Context(), "race", name)
				if errors.Is(err, stream.ErrHeld) {
					time.Sleep(time.Millisecond)
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if holder != "" || lease.Epoch() <= last {
					t.Errorf("%s holds epoch %d; %q holds epoch %d", name, lease.Epoch(), holder, last)
				}
				holder, last = name, lease.Epoch()
				mu.Unlock()
				mu.Lock()
				holder = ""
				mu.Unlock()
				if err := lease.Release(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
				n++
			}
		})
	}
	wg.Wait()
}
