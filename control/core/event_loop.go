package core

import (
	"context"
	"errors"
	"time"
)

// ErrEnded says that nobody runs the controller any more.
var ErrEnded = errors.New("control: the controller has ended")

// EventLoop lets other goroutines into the one that owns a controller: they leave a
// function with Do, and the owner runs it when it comes by with Serve or Rest.
type EventLoop struct {
	commands chan func()
	ended    chan struct{}
}

// NewEventLoop makes a door.
func NewEventLoop() *EventLoop { return &EventLoop{commands: make(chan func(), 16), ended: make(chan struct{})} }

// Call has f run by the owner and waits for it.
func (d *EventLoop) Call(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case d.commands <- func() { f(); close(done) }:
	case <-d.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-d.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RunPending runs the functions that wait.
func (d *EventLoop) RunPending() {
	for {
		select {
		case f := <-d.commands:
			f()
		default:
			return
		}
	}
}

// Sleep waits, and serves meanwhile.
func (d *EventLoop) Sleep(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	for {
		select {
		case f := <-d.commands:
			f()
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Close refuses those who wait and those who come. The owner calls it once.
func (d *EventLoop) Close() { close(d.ended) }
