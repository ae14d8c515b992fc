package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
)

// guard wraps all handlers: it enforces limits, authenticates the caller, and
// counts requests.
func (s *Server) guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection() // rejects cross-site requests that change state
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.handlers.begin() {
			writeProblem(w, http.StatusServiceUnavailable, "the controller is shutting down")
			return
		}
		defer s.handlers.end()
		began := time.Now()
		out := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		audit := func(status int) {}
		defer func() {
			defer func() { audit(out.status) }() // that of a panic, too
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler {
					panic(v)
				}
				s.log.Error("handler panicked", "method", r.Method, "path", r.URL.Path, "panic", v)
				s.metrics.panics.Inc()
				if !out.wrote {
					writeProblem(out, http.StatusInternalServerError, "internal error; see the controller's log")
				}
			}
			s.metrics.observeRequest(r.Method, routeOf(r), out.status, time.Since(began))
		}()
		setSecurityHeaders(w.Header(), r.TLS != nil)
		who, ok := s.authenticate(out, r, origin)
		if !ok {
			return
		}
		// What is left is to send the end of the answer: a client that does not read it
		// must not hold its place.
		defer connOf(r.Context()).setPhase(waitingPhase)
		class := anonymousConn
		if who != nil {
			class = who.class()
			r = r.WithContext(context.WithValue(r.Context(), callerKey{}, who))
			if s.audit != nil && audited(r.Method) {
				audit = s.startAudit(r, who)
			}
		}
		if hasOwnLimits(r.URL.Path) {
			next.ServeHTTP(out, r)
			return
		}
		if !s.requests.take(class) {
			w.Header().Set("Retry-After", "1")
			s.refuse(out, "requests", http.StatusServiceUnavailable,
				fmt.Sprintf("the limit of %d concurrent requests is reached; retry later", s.requests.limit(class)))
			return
		}
		defer s.requests.release(class)
		ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout)
		defer cancel()
		zip := newCompressWriter(out, r)
		next.ServeHTTP(zip, r.WithContext(ctx))
		zip.close()
	})
}

// hasOwnLimits reports whether the limit of requests does not apply to a path:
// event streams last, and probes of the process's health must be answered always.
func hasOwnLimits(path string) bool {
	return path == Prefix+"/events" || path == "/healthz" || path == "/readyz" || strings.HasPrefix(path, profilerPrefix)
}

// authenticate returns the caller of a request, nil where none is needed. It
// answers a request that it refuses.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request, origin *http.CrossOriginProtection) (*caller, bool) {
	if !s.isOwnHost(r.Host) {
		s.refuse(w, "host", http.StatusMisdirectedRequest, "unknown host name; add it to api.hosts of the configuration")
		return nil, false
	}
	if err := origin.Check(r); err != nil {
		s.refuse(w, "cross origin", http.StatusForbidden, err.Error())
		return nil, false
	}
	conn := connOf(r.Context())
	if !needsToken(r.URL.Path) {
		conn.setPhase(servingPhase)
		return nil, true
	}
	who := s.identifyGuarded(r, conn)
	if who == nil {
		challenge, detail := s.tokenProblem(r)
		w.Header().Set("WWW-Authenticate", challenge)
		s.refuse(w, "token", http.StatusUnauthorized, detail)
		return nil, false
	}
	conn.setPhase(servingPhase)
	return who, true
}

// refuse counts and answers a request that is not processed.
func (s *Server) refuse(w http.ResponseWriter, reason string, status int, detail string) {
	s.metrics.refused.WithLabelValues(reason).Inc()
	writeProblem(w, status, detail)
}

// needsToken reports whether a path requires authentication. The console's files
// do not: they must load to show the sign-in form.
func needsToken(path string) bool {
	return strings.HasPrefix(path, "/api/") || path == "/metrics" || strings.HasPrefix(path, profilerPrefix)
}

// isOwnHost reports whether a Host header names this server: an IP address,
// localhost, or a configured name. Other names that resolve here are how a foreign
// web page would reach a server on loopback (DNS rebinding).
func (s *Server) isOwnHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || slices.ContainsFunc(s.cfg.Hosts,
		func(h string) bool { return strings.EqualFold(h, host) })
}

// setSecurityHeaders restricts browsers to what the console needs: it loads nothing
// from other hosts and no site may frame it. Inline styles are allowed because
// drawings set positions in them. Over TLS, browsers must not return without it.
func setSecurityHeaders(h http.Header, overTLS bool) {
	if overTLS {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	h.Set("Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "+
			"font-src 'self'; connect-src 'self'; worker-src 'self' blob:; manifest-src 'self'; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// writeProblem writes problem details for requests that do not reach an operation.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(huma.ErrorModel{Title: http.StatusText(status), Status: status, Detail: detail})
}

// routeOf returns the route pattern of a request. Paths themselves would give
// metrics an unbounded number of labels.
func routeOf(r *http.Request) string {
	if c := chi.RouteContext(r.Context()); c != nil {
		if p := c.RoutePattern(); p != "" {
			return p
		}
	}
	return "other"
}

// statusWriter records the response status.
type statusWriter struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *statusWriter) WriteHeader(status int) {
	if !w.wrote {
		w.status, w.wrote = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(b)
}

// Unwrap lets deadlines and flushes through.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
