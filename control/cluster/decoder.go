package cluster

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/member"
)

// DecoderConfig describes a Decoder.
type DecoderConfig struct {
	ID       string // of the member
	Leases   stream.Leases
	Interval time.Duration // between two looks at the group
	// Start opens the sockets, and returns what receives until its context ends.
	Start func(ctx context.Context) (func(context.Context) error, error)
	// Ending is closed when the process ends: the lease is then kept until all that was
	// received is published.
	Ending <-chan struct{}
	Log    *slog.Logger
}

// Decoder receives reports while it has the lease of a group of one partition; others of
// the group are its standbys. A decoder whose lease ends as the broker is away goes on
// receiving, as reports wait in its memory, until it sees that another has the lease.
// Work is a member's work, and Run works beside the member.
type Decoder struct {
	cfg DecoderConfig

	holding atomic.Bool
	granted chan struct{} // has a token when it may have begun to hold
	ended   chan struct{} // Run has returned
}

// NewDecoder makes a decoder that is not in its group.
func NewDecoder(cfg DecoderConfig) *Decoder {
	return &Decoder{cfg: cfg, granted: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Work holds the lease until ctx ends.
func (d *Decoder) Work(ctx context.Context, _ int, _ uint64) error {
	d.holding.Store(true)
	defer d.holding.Store(false)
	select {
	case d.granted <- struct{}{}:
	default:
	}
	<-ctx.Done()
	select {
	case <-d.cfg.Ending:
		<-d.ended
	default:
	}
	return ctx.Err()
}

// Run receives whenever the lease is this member's, until ctx ends.
func (d *Decoder) Run(ctx context.Context) error {
	defer close(d.ended)
	for {
		for !d.holding.Load() {
			select {
			case <-ctx.Done():
				return nil
			case <-d.granted:
			}
		}
		if err := d.receive(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// receive receives until ctx ends or another decoder has the lease.
func (d *Decoder) receive(ctx context.Context) error {
	run, err := d.cfg.Start(ctx)
	if err != nil {
		return err
	}
	own, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- run(own) }()
	t := time.NewTicker(d.cfg.Interval)
	defer t.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-t.C:
			if by := d.replacedBy(ctx); by != "" {
				d.cfg.Log.Warn("another member has the lease and receives; this one is its standby", "member", by)
				stop()
				return <-done
			}
		}
	}
}

// replacedBy returns the member that has taken the lease; empty: none is known.
func (d *Decoder) replacedBy(ctx context.Context) string {
	if d.holding.Load() {
		return ""
	}
	g, err := member.Look(ctx, d.cfg.Leases, DecodeGroup)
	if err != nil || g.Holders[0] == d.cfg.ID {
		return ""
	}
	return g.Holders[0]
}
