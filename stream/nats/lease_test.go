package nats

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/stream"
)

// TestLeaseExpires has a holder that dies: others can acquire its lease after a while,
// with a higher epoch, and not before.
func TestLeaseExpires(t *testing.T) {
	const ttl = 500 * time.Millisecond
	conn := connect(t, shared.URL())
	theirs, err := OpenLeases(t.Context(), conn, "expires", ttl, 1)
	if err != nil {
		t.Fatal(err)
	}
	ours := leases(t, "expires", ttl)
	first, err := theirs.Acquire(t.Context(), "lead", "a")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * ttl) // long enough to expire, were it not renewed
	if early, err := ours.Acquire(t.Context(), "lead", "b"); !errors.Is(err, stream.ErrHeld) {
		select {
		case <-first.Lost(): // the machine was halted for longer than ttl, and the holder knows
			if err := early.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("Acquire of a lease that is renewed = %v; want ErrHeld", err)
		}
	}
	conn.Close()
	began := time.Now()
	for {
		next, err := ours.Acquire(t.Context(), "lead", "b")
		if err == nil {
			select {
			case <-first.Lost():
			default:
				t.Error("another member has the lease, and its holder does not know")
			}
			if next.Epoch() <= first.Epoch() {
				t.Errorf("epoch %d after %d", next.Epoch(), first.Epoch())
			}
			t.Logf("taken over after %v, leases of %v", time.Since(began), ttl)
			if err := next.Release(t.Context()); err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, stream.ErrHeld) || time.Since(began) > time.Minute {
			t.Fatalf("Acquire = %v after %v", err, time.Since(began))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
