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

// operationalRoutes adds what is not in the OpenAPI document.
func (s *Server) operationalRoutes(r chi.Router) {
	r.Get("/version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.deps.Build)
	})
}

// healthCheckRoutes adds what monitoring asks, which the health listener serves,
// too.
func (s *Server) healthCheckRoutes(r chi.Router) {
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
	r.With(s.operatorOnly).Handle("/metrics", promhttp.HandlerFor(s.deps.Metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, Timeout: s.cfg.RequestTimeout,
	}))
}

func (s *Server) operatorOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if callerOf(r.Context()).tenant != nil {
			s.refuse(w, "tenant", http.StatusForbidden, "this requires the operator token")
			return
		}
		if strings.HasPrefix(r.URL.Path, profilerPrefix) && callerOf(r.Context()).role < admin {
			s.refuse(w, "role", http.StatusForbidden, "profiles show memory: this needs the role admin")
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

// healthHandler answers health checks and metrics, and nothing else.
func (s *Server) healthHandler() http.Handler {
	r := chi.NewRouter()
	r.Use(s.guard)
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusNotFound, "no such route; this address has /healthz, /readyz and /metrics")
	})
	s.healthCheckRoutes(r)
	return r
}

const profilerPrefix = "/debug/pprof/"

// profilerHandler serves Go's profiler to the operator. Profiles show memory, so it
// only listens on loopback, and pages of other sites must not reach it.
func (s *Server) profilerHandler() http.Handler {
	r := chi.NewRouter()
	r.Use(s.guard)
	profiles := r.With(s.operatorOnly) // other paths have no caller
	profiles.HandleFunc(profilerPrefix+"*", pprof.Index)
	profiles.HandleFunc(profilerPrefix+"cmdline", pprof.Cmdline)
	profiles.HandleFunc(profilerPrefix+"profile", pprof.Profile)
	profiles.HandleFunc(profilerPrefix+"symbol", pprof.Symbol)
	profiles.HandleFunc(profilerPrefix+"trace", pprof.Trace)
	return r
}
