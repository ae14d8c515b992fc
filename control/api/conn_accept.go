package api

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// trackedListener accepts connections into a table. It outlasts errors that pass:
// a process out of file descriptors answers again once it has some.
type trackedListener struct {
	net.Listener
	table  *connTable
	errors *acceptErrors
	once   sync.Once
	closed chan struct{}
}

func newTrackedListener(ln net.Listener, t *connTable, e *acceptErrors) *trackedListener {
	return &trackedListener{Listener: ln, table: t, errors: e, closed: make(chan struct{})}
}

// Delays before Accept is tried again: each doubles the last.
const (
	firstAcceptRetry = 5 * time.Millisecond
	lastAcceptRetry  = time.Second
)

// Accept returns the next connection that has a place in the table.
func (l *trackedListener) Accept() (net.Conn, error) {
	for wait := firstAcceptRetry; ; {
		c, err := l.Listener.Accept()
		if err == nil {
			wait = firstAcceptRetry
			if tc := l.table.add(c); tc != nil {
				return tc, nil
			}
			continue
		}
		if !passes(err) {
			return nil, err
		}
		l.errors.add(l.Addr(), err)
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.table.evict()
		}
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-time.After(wait):
		}
		wait = min(2*wait, lastAcceptRetry)
	}
}

// Close also ends the wait after an error.
func (l *trackedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// passes reports whether a later Accept may succeed.
func passes(err error) bool {
	for _, e := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR, syscall.EPROTO,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// acceptErrors logs and counts failures of Accept.
type acceptErrors struct {
	log   *slog.Logger
	count func()
	quiet logLimit
	last  atomic.Pointer[acceptError]
}

type acceptError struct {
	at  time.Time
	err error
}

func (e *acceptErrors) add(addr net.Addr, err error) {
	e.count()
	now := time.Now()
	e.last.Store(&acceptError{now, err})
	if skipped, ok := e.quiet.allow(now); ok {
		e.log.Warn("cannot accept connections; if it is out of files, raise the limit (LimitNOFILE, ulimit -n)",
			"listen", addr, "err", err, "more_since_last_line", skipped)
	}
}

// recent returns the last error of the past minute, or nil.
func (e *acceptErrors) recent(now time.Time) error {
	if last := e.last.Load(); last != nil && now.Sub(last.at) < time.Minute {
		return last.err
	}
	return nil
}

// logLimit lets one line through every 10 s.
type logLimit struct {
	mu      sync.Mutex
	next    time.Time
	skipped int
}

const logInterval = 10 * time.Second

// allow reports whether a line may be written, and how many were not since the
// last.
func (l *logLimit) allow(now time.Time) (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.next) {
		l.skipped++
		return 0, false
	}
	skipped, l.skipped, l.next = l.skipped, 0, now.Add(logInterval)
	return skipped, true
}
