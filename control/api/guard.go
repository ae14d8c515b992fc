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
		began := time.Now()
		out := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
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
		setSecurityHeaders(w.Header())
		refuse := func(reason string, status int, detail string) {
			s.metrics.refused.WithLabelValues(reason).Inc()
			writeProblem(out, status, detail)
		}
		if !s.isOwnHost(r.Host) {
			refuse("host", http.StatusMisdirectedRequest, "unknown host name; add it to api.hosts of the configuration")
			return
		}
		if err := origin.Check(r); err != nil {
			refuse("cross origin", http.StatusForbidden, err.Error())
			return
		}
		if needsToken(r.URL.Path) {
			who := s.identify(r)
			if who == nil {
				w.Header().Set("WWW-Authenticate", `Bearer realm="weft"`)
				refuse("token", http.StatusUnauthorized, "token required: send the header Authorization: Bearer TOKEN")
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), callerKey{}, who))
		}
		if r.URL.Path == Prefix+"/events" {
			next.ServeHTTP(out, r) // has its own limits
			return
		}
		select {
		case s.requests <- struct{}{}:
			defer func() { <-s.requests }()
		default:
			w.Header().Set("Retry-After", "1")
			refuse("requests", http.StatusServiceUnavailable,
				fmt.Sprintf("the limit of %d concurrent requests is reached; retry later", cap(s.requests)))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout)
		defer cancel()
		next.ServeHTTP(out, r.WithContext(ctx))
	})
}

// needsToken reports whether a path requires authentication. The console's files
// do not: they must load to show the sign-in form.
func needsToken(path string) bool {
	return strings.HasPrefix(path, "/api/") || path == "/metrics"
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
// drawings set positions in them.
func setSecurityHeaders(h http.Header) {
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
