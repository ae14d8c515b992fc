package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/weft-telemetry/weft/stream"
)

// Leases are keys of a bucket that expire unless their holder renews them. The broker's
// clock alone decides when.
type Leases struct {
	kv  jetstream.KeyValue
	ttl time.Duration
}

var _ stream.Leases = (*Leases)(nil)

// OpenLeases opens the leases of a name, and makes them if there are none. All members
// have the same ttl, after which a lease is free if its holder has died.
func OpenLeases(ctx context.Context, conn *client.Conn, name string, ttl time.Duration, replicas int) (*Leases, error) {
	if ttl < 200*time.Millisecond || !validName.MatchString(name) {
		return nil, fmt.Errorf("nats: leases %q of %v, want a name of letters, digits, - and _, and at least 200ms", name, ttl)
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(ttl))
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	kv, err := openBucket(ctx, js, jetstream.KeyValueConfig{Bucket: name, TTL: ttl, History: 1, Replicas: replicas, Storage: jetstream.FileStorage})
	if err != nil {
		return nil, fmt.Errorf("nats: leases %s: %w", name, err)
	}
	return &Leases{kv, ttl}, nil
}

// Acquire implements stream.Leases.
func (l *Leases) Acquire(ctx context.Context, name, holder string) (stream.Lease, error) {
	sent := time.Now()
	revision, err := l.kv.Create(ctx, name, []byte(holder))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil, fmt.Errorf("nats: %s: %w", name, stream.ErrHeld)
	} else if err != nil {
		return nil, fmt.Errorf("nats: lease %s: %w", name, err)
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	h := &lease{of: l, name: name, holder: holder, epoch: revision, revision: revision, lost: make(chan struct{}), stop: stop}
	h.wg.Go(func() { h.renew(renewing, sent) })
	return h, nil
}

// Holders implements stream.Leases.
func (l *Leases) Holders(ctx context.Context, prefix string) (map[string]string, error) {
	w, err := l.kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("nats: leases: %w", err)
	}
	defer w.Stop() //nolint:errcheck // ends with the connection at the latest
	found := map[string]string{}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, errors.New("nats: leases: the broker ended the list")
			case e == nil: // all there are
				return found, nil
			case strings.HasPrefix(e.Key(), prefix):
				found[e.Key()] = string(e.Value())
			}
		}
	}
}

// lease is a key that this process renews.
type lease struct {
	of           *Leases
	name, holder string
	epoch        uint64
	lost         chan struct{}
	stop         context.CancelFunc
	wg           sync.WaitGroup

	mu       sync.Mutex
	revision uint64
	over     bool // lost or released
}

func (h *lease) Epoch() uint64         { return h.epoch }
func (h *lease) Lost() <-chan struct{} { return h.lost }

// renew renews until ctx ends or the lease is lost: someone else has it, or the broker
// could not be asked until it expires. The broker counts from when it has stored a
// renewal, which is after it was sent.
func (h *lease) renew(ctx context.Context, sent time.Time) {
	interval := h.of.ttl / 4
	for {
		wait := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		expires := sent.Add(h.of.ttl)
		now := time.Now()
		// Release waits for the answer: it needs the revision.
		one, cancel := context.WithDeadline(context.WithoutCancel(ctx), expires)
		revision, err := h.of.kv.Update(one, h.name, []byte(h.holder), h.revision)
		cancel()
		switch {
		case err == nil:
			h.mu.Lock()
			h.revision = revision
			h.mu.Unlock()
			sent, interval = now, h.of.ttl/4
		case errors.Is(err, jetstream.ErrKeyExists) || time.Now().After(expires):
			// After a renewal whose answer was lost the revision is not ours either; to give
			// the lease up is then safe, too.
			h.mu.Lock()
			h.over = true
			h.mu.Unlock()
			close(h.lost)
			return
		default:
			interval = h.of.ttl / 20
		}
	}
}

// Release implements stream.Lease.
func (h *lease) Release(ctx context.Context) error {
	h.stop()
	h.wg.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil
	}
	h.over = true
	err := h.of.kv.Delete(ctx, h.name, jetstream.LastRevision(h.revision))
	if err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return fmt.Errorf("nats: release %s: %w", h.name, err)
	}
	return nil
}
