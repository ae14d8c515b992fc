package stream

import (
	"context"
	"errors"
)

// ErrHeld is returned if another member holds a lease.
var ErrHeld = errors.New("stream: lease is held")

// Leases give names to one holder at a time: partitions to their readers, the lead to
// a leader.
type Leases interface {
	// Acquire takes a lease and renews it until it is released or lost. It returns
	// ErrHeld, without waiting, if it is held.
	Acquire(ctx context.Context, name, holder string) (Lease, error)
	// Holders returns the holders of all leases whose names begin with a prefix.
	Holders(ctx context.Context, prefix string) (map[string]string, error)
}

// Lease is a name that is held.
type Lease interface {
	// Epoch is higher than that of any earlier holder of the name.
	Epoch() uint64
	// Lost is closed before another member can acquire the lease, unless the holder's
	// process was halted meanwhile.
	Lost() <-chan struct{}
	// Release lets others acquire it at once.
	Release(ctx context.Context) error
}
