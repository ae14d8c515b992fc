package api

import (
	"context"
	"reflect"
	"sync"
	"time"
)

// coalescer makes equal requests that arrive within coalesceTTL share one store
// query: many clients show the same view, and a query costs milliseconds of CPU.
type coalescer struct {
	mu      sync.Mutex
	answers map[any]*coalescedAnswer
}

// coalescedAnswer is an answer, finished or in progress: done is closed when it is
// finished. The coalescer's lock guards until.
type coalescedAnswer struct {
	done  chan struct{}
	until time.Time // zero: in progress
	value any
	err   error
}

// coalesceTTL is the maximum age of a reused answer: about as long as records wait
// before they are written. maxCoalesced bounds the number of kept answers.
const (
	coalesceTTL  = 250 * time.Millisecond
	maxCoalesced = 64
)

// coalesced wraps a handler so that equal requests share one answer. All callers
// get the same answer, so it must not wrap a handler that tenants may call.
func coalesced[I comparable, T any](s *Server, op string,
	f func(context.Context, *I) (T, error),
) func(context.Context, *I) (T, error) {
	type question struct {
		op string
		in I
	}
	return func(ctx context.Context, in *I) (T, error) {
		v, err := s.coalescer.do(ctx, question{op, *in}, func() (any, error) {
			// Other callers may still wait when this one has disconnected.
			shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.RequestTimeout)
			defer cancel()
			defer context.AfterFunc(s.ended, cancel)() // nor may it outlast the server
			v, err := f(shared, in)
			fillLists(reflect.ValueOf(&v).Elem()) // here, as the shared value is read-only afterwards
			return v, err
		})
		t, _ := v.(T)
		return t, err
	}
}

// ForgetAnswers makes later requests look again, though an equal one was answered less than
// coalesceTTL ago. Requests in progress are answered as they are.
func (s *Server) ForgetAnswers() { s.coalescer.forget() }

func (r *coalescer) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for q, a := range r.answers {
		if !a.until.IsZero() {
			delete(r.answers, q)
		}
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
	a = &coalescedAnswer{done: make(chan struct{}), err: context.Canceled} // for waiting callers if f panics
	r.answers[question] = a
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		a.until = time.Now().Add(coalesceTTL)
		if a.err != nil {
			delete(r.answers, question) // so that the next request retries
		}
		r.mu.Unlock()
		close(a.done)
	}()
	a.value, a.err = f()
	return a.value, a.err
}
