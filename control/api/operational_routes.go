package api

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/pprof"
	"path"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// operationalRoutes adds health checks, version and metrics, which are not in the
// OpenAPI document.
func (s *Server) operationalRoutes(r chi.Router) {
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeText(w, http.StatusOK, "ok\n")
	})
	r.Get("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.deps.Live.Ready(); err != nil {
			writeText(w, http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n")
			return
		}
		writeText(w, http.StatusOK, "ready\n")
	})
	r.Get("/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.deps.Build)
	})
	r.With(s.operatorOnly).Handle("/metrics", promhttp.HandlerFor(s.deps.Metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, Timeout: s.cfg.RequestTimeout,
	}))
}

func (s *Server) operatorOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if callerOf(r.Context()).tenant != nil {
			s.metrics.refused.WithLabelValues("tenant").Inc()
			writeProblem(w, http.StatusForbidden, "metrics require the operator token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// serveConsole serves the console's files, and index.html for every other path: the
// console keeps its state in the URL.
func (s *Server) serveConsole(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if s.deps.Console == nil || strings.HasPrefix(r.URL.Path, "/api/") || r.Method != http.MethodGet &&
		r.Method != http.MethodHead {
		writeProblem(w, http.StatusNotFound, "no such route; /openapi.json lists all routes")
		return
	}
	info, err := fs.Stat(s.deps.Console, name)
	if err != nil || info.IsDir() {
		if path.Ext(name) != "" {
			writeProblem(w, http.StatusNotFound, "no such file")
			return
		}
		name = "index.html"
	} else if strings.HasPrefix(name, "assets/") {
		// Their names contain a hash of their content.
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeFileFS(w, r, s.deps.Console, name)
}

// pprofHandler serves Go's profiler; it must only listen on loopback.
func pprofHandler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("/debug/pprof/", pprof.Index)
	m.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	m.HandleFunc("/debug/pprof/profile", pprof.Profile)
	m.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	m.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return m
}
