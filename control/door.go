package control

import (
	"context"
	"errors"
	"time"
)

// ErrEnded says that nobody runs the controller any more.
var ErrEnded = errors.New("control: the controller has ended")

// Door lets other goroutines into the one that owns a controller: they leave a
// function with Do, and the owner runs it when it comes by with Serve or Rest.
type Door struct {
	commands chan func()
	ended    chan struct{}
}

// NewDoor makes a door.
func NewDoor() *Door { return &Door{commands: make(chan func(), 16), ended: make(chan struct{})} }

// Do has f run by the owner and waits for it.
func (d *Door) Do(ctx context.Context, f func()) error {
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

// Serve runs the functions that wait.
func (d *Door) Serve() {
	for {
		select {
		case f := <-d.commands:
			f()
		default:
			return
		}
	}
}

// Rest waits, and serves meanwhile.
func (d *Door) Rest(ctx context.Context, wait time.Duration) {
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
func (d *Door) Close() { close(d.ended) }
