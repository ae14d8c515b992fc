package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// idleTimeout is how long a connection may wait for its next request.
	idleTimeout = 2 * time.Minute
	// anonymousIdle is that of a connection that has shown no valid token.
	anonymousIdle = 10 * time.Second
	// shutdownGrace is what requests in progress have to finish.
	shutdownGrace = 3 * time.Second

	// Connections of the health listener: a few monitors, each with one.
	healthConnections = 64
	healthReserved    = 8
	healthTimeout     = 2 * time.Second // to receive a request
)

// Run listens and serves until ctx ends, then waits for requests in progress.
func (s *Server) Run(ctx context.Context) error {
	ln, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("api: %w", err)
	}
	return s.Serve(ctx, ln)
}

// endpoint is an HTTP server and where it listens.
type endpoint struct {
	server   *http.Server
	listener net.Listener
}

// Serve serves on a listener and closes it. When it returns, no handler runs any
// more, and later requests are refused. It may be called once.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	endpoints, err := s.listen(ln)
	if err != nil {
		for _, e := range endpoints {
			err = errors.Join(err, e.listener.Close())
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, e := range endpoints {
		all.Go(func() {
			if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
				cancel(fmt.Errorf("api: serve %s: %w", e.listener.Addr(), err))
			}
		})
	}
	all.Go(func() { s.publishChanges(ctx) })
	<-ctx.Done()
	s.deps.Hub.close()
	s.shutdown(endpoints)
	all.Wait()
	if s.audit != nil {
		err = s.audit.close()
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return errors.Join(cause, err)
	}
	return err
}

// shutdown ends all connections, and returns when no handler runs any more: after
// it the backends may be closed.
func (s *Server) shutdown(endpoints []endpoint) {
	grace, done := context.WithTimeout(context.Background(), s.grace)
	defer done()
	for _, e := range endpoints {
		if e.server.Shutdown(grace) != nil {
			_ = e.server.Close()
		}
	}
	s.end() // ends what requests wait for
	last, stop := context.WithTimeout(context.Background(), s.cfg.RequestTimeout)
	defer stop()
	if n := s.handlers.stop(last); n > 0 {
		s.log.Error("requests do not end; the controller closes without them", "requests", n)
	}
}

// listen opens the audit log and the other listeners. Beside an error it returns
// those that are open.
func (s *Server) listen(ln net.Listener) (list []endpoint, err error) {
	list = append(list, endpoint{s.httpServer(s.handler), s.secure(newTrackedListener(ln, s.conns, s.accepts))})
	if s.audit != nil {
		if err := s.audit.open(); err != nil {
			return list, fmt.Errorf("api: audit_file: %w", err)
		}
	}
	if s.cfg.HealthListen != "" {
		hl, err := net.Listen("tcp", s.cfg.HealthListen)
		if err != nil {
			return list, fmt.Errorf("api: health_listen: %w", err)
		}
		s.log.Info("health checks", "listen", hl.Addr())
		table := s.newConnTable(healthConnections, healthReserved, healthConnections)
		checks := s.httpServer(s.healthHandler())
		checks.ReadHeaderTimeout, checks.ReadTimeout = healthTimeout, healthTimeout
		list = append(list, endpoint{checks, s.secure(newTrackedListener(hl, table, s.accepts))})
	}
	if s.cfg.Pprof != "" {
		pl, err := net.Listen("tcp", s.cfg.Pprof)
		if err != nil {
			return list, fmt.Errorf("api: pprof: %w", err)
		}
		s.log.Info("profiler", "listen", pl.Addr())
		table := s.newConnTable(healthConnections, healthReserved, healthConnections)
		profiles := s.httpServer(s.profilerHandler())
		profiles.WriteTimeout = 0 // the request sets the duration of a profile
		list = append(list, endpoint{profiles, newTrackedListener(pl, table, s.accepts)})
	}
	return list, nil
}

func (s *Server) newConnTable(limit, reserved, perAddress int) *connTable {
	return &connTable{
		max: limit, reserved: reserved, perAddress: perAddress, idle: max(anonymousIdle, s.cfg.ReadTimeout),
		onRefuse: s.metrics.refused.WithLabelValues("connections").Inc,
		onEvict:  s.metrics.refused.WithLabelValues("evicted").Inc,
	}
}

// secure adds TLS, if there is a certificate. Of TLS 1.2 only the suites that
// encrypt and authenticate in one step, with ephemeral keys, are offered; those of
// TLS 1.3 all do.
func (s *Server) secure(ln net.Listener) net.Listener {
	if s.cfg.TLSCert == "" {
		return ln
	}
	return tls.NewListener(ln, &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.access.Load().cert, nil },
		MinVersion:     tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
	})
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: s.cfg.ReadTimeout, ReadTimeout: s.cfg.ReadTimeout,
		WriteTimeout: s.cfg.RequestTimeout + s.cfg.WriteTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: s.cfg.MaxHeader, ErrorLog: slog.NewLogLogger(httpErrors{s.log.Handler()}, slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return s.ended },
	}
	trackConns(server)
	return server
}

// httpErrors is the log of an HTTP server. What clients do wrong, which strangers
// could fill the log with, is for debugging; the rest are warnings.
type httpErrors struct{ slog.Handler }

// Handle implements slog.Handler.
func (h httpErrors) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "http: TLS handshake error") {
		r.Level = slog.LevelDebug
	}
	if !h.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// runningHandlers counts the requests that are being handled.
type runningHandlers struct {
	mu      sync.Mutex
	n       int
	stopped chan struct{} // nil: not stopping; closed when the last one ends
}

// begin returns false once no more may begin.
func (h *runningHandlers) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped != nil {
		return false
	}
	h.n++
	return true
}

func (h *runningHandlers) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n--; h.n == 0 && h.stopped != nil {
		close(h.stopped)
	}
}

// stop lets no handler begin, waits until all have ended or ctx ends, and returns
// the number of those that have not.
func (h *runningHandlers) stop(ctx context.Context) int {
	h.mu.Lock()
	h.stopped = make(chan struct{})
	if h.n == 0 {
		close(h.stopped)
	}
	h.mu.Unlock()
	select {
	case <-h.stopped:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n
}
