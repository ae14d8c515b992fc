package core

import (
	"context"
	"errors"
	"testing"
)

// TestAbandonedCallNeverRuns: a caller that gives up has its variables back.
func TestAbandonedCallNeverRuns(t *testing.T) {
	l := NewEventLoop()
	ctx, cancel := context.WithCancel(t.Context())
	ran := false
	result := make(chan error)
	go func() { result <- l.Call(ctx, func() { ran = true }) }()
	run := <-l.calls // the owner has taken it, and not run it yet
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatalf("the call returned %v; want that it was cancelled", err)
	}
	run()
	if ran {
		t.Error("the function ran after its caller had given up")
	}
}

// TestCallThatRunsIsAwaited: a caller does not give up while its function runs.
func TestCallThatRunsIsAwaited(t *testing.T) {
	l := NewEventLoop()
	ctx, cancel := context.WithCancel(t.Context())
	value := 0
	result := make(chan error)
	go func() { result <- l.Call(ctx, func() { cancel(); value = 1 }) }()
	(<-l.calls)()
	if err := <-result; err != nil || value != 1 {
		t.Errorf("the call returned %v and left %d; want no error and 1", err, value)
	}
}

// TestPanicOfACallIsItsCallers: the goroutine that owns the controller goes on.
func TestPanicOfACallIsItsCallers(t *testing.T) {
	l := NewEventLoop()
	caught := make(chan any)
	go func() {
		defer func() { caught <- recover() }()
		_ = l.Call(t.Context(), func() { panic("a bug of ours") })
	}()
	(<-l.calls)()
	if v := <-caught; v != "a bug of ours" {
		t.Errorf("the caller caught %v; want the panic of its function", v)
	}
}
