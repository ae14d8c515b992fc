package inproc

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/weft-telemetry/weft/stream"
)

// Leases are leases within one process. None is lost: its holder would have to die,
// and all others with it.
type Leases struct {
	mu      sync.Mutex
	epoch   uint64
	holders map[string]string
}

var _ stream.Leases = (*Leases)(nil)

// NewLeases makes leases without holders.
func NewLeases() *Leases { return &Leases{holders: map[string]string{}} }

// Acquire implements stream.Leases.
func (l *Leases) Acquire(ctx context.Context, name, holder string) (stream.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if other, held := l.holders[name]; held {
		return nil, fmt.Errorf("%s by %s: %w", name, other, stream.ErrHeld)
	}
	l.epoch++
	l.holders[name] = holder
	return &lease{of: l, name: name, epoch: l.epoch, lost: make(chan struct{})}, nil
}

// Holders implements stream.Leases.
func (l *Leases) Holders(_ context.Context, prefix string) (map[string]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := maps.Clone(l.holders)
	maps.DeleteFunc(found, func(name, _ string) bool { return !strings.HasPrefix(name, prefix) })
	return found, nil
}

type lease struct {
	of       *Leases
	name     string
	epoch    uint64
	lost     chan struct{} // never closed
	released sync.Once
}

func (l *lease) Epoch() uint64         { return l.epoch }
func (l *lease) Lost() <-chan struct{} { return l.lost }

func (l *lease) Release(context.Context) error {
	l.released.Do(func() {
		l.of.mu.Lock()
		defer l.of.mu.Unlock()
		delete(l.of.holders, l.name)
	})
	return nil
}
