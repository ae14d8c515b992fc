package cluster

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/stream/member"
)

// TestDecoderKeepsReceiving: one whose lease has ended receives until another has it, and
// again when it gets it back.
func TestDecoderKeepsReceiving(t *testing.T) {
	leases := inproc.NewLeases()
	started, ended := make(chan struct{}, 8), make(chan struct{}, 8)
	ending, end := context.WithCancel(t.Context())
	d := NewDecoder(DecoderConfig{
		ID: "a", Leases: leases, Interval: time.Millisecond, Ending: ending.Done(), Log: slog.New(slog.DiscardHandler),
		Start: func(context.Context) (func(context.Context) error, error) {
			started <- struct{}{}
			return func(ctx context.Context) error { <-ctx.Done(); ended <- struct{}{}; return nil }, nil
		},
	})
	run := make(chan error, 1)
	go func() { run <- d.Run(ending) }()
	term := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Work(ctx, 0, 1) }()
		return func() { cancel(); <-done }
	}
	lose := term()
	<-started
	lose()
	lose = term() // nobody had it meanwhile
	lose()
	if len(started)+len(ended) > 0 {
		t.Fatalf("it ended %d times and started %d more, although no other decoder has the lease", len(ended), len(started))
	}
	other, err := member.New(member.Config{Group: DecodeGroup, ID: "b", Partitions: 1, Interval: time.Millisecond}, leases,
		func(ctx context.Context, _ int, _ uint64) error { <-ctx.Done(); return ctx.Err() })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- other.Run(ctx) }()
	<-ended
	stop()
	if err := <-left; err != nil {
		t.Error(err)
	}
	term()
	<-started
	end()
	<-ended
	if err := <-run; err != nil {
		t.Error(err)
	}
}
