package api

import (
	"context"
	"reflect"
	"sync"
	"time"
)

// coalescer lets requests for the same thing at about the same time share one
// question to the store: many clients look at the same page, and a store takes
// milliseconds of a core for each question.
type coalescer struct {
	mu      sync.Mutex
	answers map[any]*coalescedAnswer
}

// coalescedAnswer is an answer, or one that is being made: done is closed when it is
// there. Until is guarded by recall's lock.
type coalescedAnswer struct {
	done  chan struct{}
	until time.Time // zero: it is being made
	value any
	err   error
}

// coalesceTTL is how old an answer may be: about as long as records wait before
// they are written. maxCoalesced bounds how many are kept.
const (
	coalesceTTL  = 250 * time.Millisecond
	maxCoalesced = 64
)

// coalesced makes a handler whose answers are shared by all who ask the same of it.
// All callers of such a handler must be told the same: it is not for tenants.
func coalesced[I comparable, T any](s *Server, op string, f func(context.Context, *I) (T, error)) func(context.Context, *I) (T, error) {
	type question struct {
		op string
		in I
	}
	return func(ctx context.Context, in *I) (T, error) {
		v, err := s.coalescer.do(ctx, question{op, *in}, func() (any, error) {
			// Others may wait for it when this caller has gone.
			own, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.RequestTimeout)
			defer cancel()
			v, err := f(own, in)
			fillLists(reflect.ValueOf(&v).Elem()) // here: later it is only read
			return v, err
		})
		t, _ := v.(T)
		return t, err
	}
}

func (r *coalescer) do(ctx context.Context, question any, f func() (any, error)) (any, error) {
	now := time.Now()
	r.mu.Lock()
	a := r.answers[question]
	if a != nil && (a.until.IsZero() || now.Before(a.until)) {
		r.mu.Unlock()
		select {
		case <-a.done:
			return a.value, a.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if r.answers == nil {
		r.answers = map[any]*coalescedAnswer{}
	}
	for q, old := range r.answers {
		if !old.until.IsZero() && now.After(old.until) {
			delete(r.answers, q)
		}
	}
	if len(r.answers) >= maxCoalesced {
		r.mu.Unlock()
		return f()
	}
	a = &coalescedAnswer{done: make(chan struct{}), err: context.Canceled} // what is told if f panics
	r.answers[question] = a
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		a.until = time.Now().Add(coalesceTTL)
		if a.err != nil {
			delete(r.answers, question) // the next shall try again
		}
		r.mu.Unlock()
		close(a.done)
	}()
	a.value, a.err = f()
	return a.value, a.err
}
