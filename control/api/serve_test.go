package api

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// stuckProber is a backend whose request ends only some steps after its context.
type stuckProber struct {
	*fake
	began  chan struct{}
	finish chan struct{}
	ended  atomic.Bool
}

func (p *stuckProber) StartProbe(ctx context.Context, _ ProbeRequest) (Probe, error) {
	close(p.began)
	<-ctx.Done()
	<-p.finish
	p.ended.Store(true)
	return Probe{}, ctx.Err()
}

// TestServeOutlastsItsHandlers: Serve does not return while a handler that has
// outlasted the grace still uses the backend, and refuses requests afterwards.
func TestServeOutlastsItsHandlers(t *testing.T) {
	p := &stuckProber{began: make(chan struct{}), finish: make(chan struct{})}
	s, _ := newServer(t, func(c *Config, d *Deps) { p.fake, d.Prober, c.RequestTimeout = d.Prober.(*fake), p, time.Hour })
	s.grace = time.Millisecond
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served, asked := make(chan error, 1), make(chan struct{})
	go func() { served <- s.Serve(ctx, ln) }()
	go func() {
		defer close(asked)
		resp, err := http.Post("http://"+ln.Addr().String()+Prefix+"/probes", "application/json",
			strings.NewReader(`{"kind":"link","link":{"node":"tor0","port":1}}`))
		if err == nil {
			resp.Body.Close()
		}
	}()
	<-p.began
	cancel()
	<-asked // its connection was closed at the end of the grace
	select {
	case err := <-served:
		t.Fatalf("Serve = %v while a handler runs", err)
	default:
	}
	if w := do(s.Handler(), "GET", "/healthz", ""); w.Code != http.StatusOK && w.Code != http.StatusServiceUnavailable {
		t.Errorf("a request during shutdown = %d", w.Code)
	}
	close(p.finish)
	if err := <-served; err != nil || !p.ended.Load() {
		t.Errorf("Serve = %v, handler ended %v; want it to end after the handler", err, p.ended.Load())
	}
	if w := do(s.Handler(), "GET", Prefix+"/clock", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a request after Serve = %d; want 503", w.Code)
	}
}

// TestHTTPErrors: what strangers can cause is not in the log at its usual level, other
// errors of the HTTP server are.
func TestHTTPErrors(t *testing.T) {
	var b bytes.Buffer
	s, _ := newServer(t, func(_ *Config, d *Deps) { d.Log = slog.New(slog.NewTextHandler(&b, nil)) })
	log := s.httpServer(nil).ErrorLog
	log.Print("http: TLS handshake error from 10.0.0.1:5: EOF")
	log.Print("http: something else")
	if text := b.String(); strings.Contains(text, "handshake") || !strings.Contains(text, "level=WARN msg=\"http: something else\"") {
		t.Errorf("log %q; want only the second line, as a warning", text)
	}
}

// TestOperatorHasAReserveOfRequests: neither anonymous clients nor tenants take all
// places.
func TestOperatorHasAReserveOfRequests(t *testing.T) {
	l := requestLimit{max: 16}
	fill := func(class connClass) (n int) {
		for l.take(class) {
			n++
		}
		return n
	}
	if a, b, c := fill(anonymousConn), fill(tenantConn), fill(operatorConn); a != 4 || b != 8 || c != 4 {
		t.Errorf("%d anonymous, %d of tenants, %d of the operator; want 4, 8, 4", a, b, c)
	}
	l.release(anonymousConn)
	if l.take(tenantConn) == false || l.take(operatorConn) {
		t.Error("a place that became free is not given once")
	}
	one := requestLimit{max: 1}
	if !one.take(anonymousConn) || one.take(operatorConn) {
		t.Error("a limit of 1 does not give one place")
	}
}

// TestHealthChecksNeedNoPlace: with all requests in use, health checks are answered.
func TestHealthChecksNeedNoPlace(t *testing.T) {
	s, _ := newServer(t)
	for s.requests.take(operatorConn) {
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/version": 503} {
		if w := do(s.Handler(), "GET", path, ""); w.Code != want {
			t.Errorf("%s with all requests in use = %d; want %d", path, w.Code, want)
		}
	}
}
