package core

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrEnded is returned when the goroutine that owns the controller has ended.
var ErrEnded = errors.New("core: the controller has ended")

// EventLoop lets other goroutines run functions in the one that owns a
// controller: they submit a function with Call, and the owner runs it in
// RunPending or Sleep.
type EventLoop struct {
	calls chan func()
	ended chan struct{}
}

// NewEventLoop makes an event loop.
func NewEventLoop() *EventLoop {
	return &EventLoop{calls: make(chan func(), 16), ended: make(chan struct{})}
}

// Call has the owner run f and waits until it has. If it returns an error, f has
// not run and never will: what f writes is the caller's again. A panic of f is the
// caller's, not the owner's.
func (l *EventLoop) Call(ctx context.Context, f func()) error {
	const running, abandoned = 1, 2
	var state atomic.Int32
	done := make(chan struct{})
	var caught any
	run := func() {
		defer close(done)
		defer func() { caught = recover() }()
		if state.CompareAndSwap(0, running) {
			f()
		}
	}
	result := func() error {
		if caught != nil {
			panic(caught)
		}
		return nil
	}
	select {
	case l.calls <- run:
	case <-l.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return result()
	case <-l.ended:
		return ErrEnded
	case <-ctx.Done():
		if state.CompareAndSwap(0, abandoned) {
			return ctx.Err()
		}
		<-done // it runs now, and is short
		return result()
	}
}

// RunPending runs the functions that are waiting.
func (l *EventLoop) RunPending() {
	for {
		select {
		case f := <-l.calls:
			f()
		default:
			return
		}
	}
}

// Sleep runs submitted functions for a time, or until ctx ends.
func (l *EventLoop) Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case f := <-l.calls:
			f()
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// RunUntil runs submitted functions until wake is closed or ctx ends.
func (l *EventLoop) RunUntil(ctx context.Context, wake <-chan struct{}) {
	for {
		select {
		case f := <-l.calls:
			f()
		case <-wake:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Close makes present and later calls return ErrEnded. The owner calls it once.
func (l *EventLoop) Close() { close(l.ended) }
