package api

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weft-telemetry/weft/analyze/collectives"
	"github.com/weft-telemetry/weft/control/handling"
	"github.com/weft-telemetry/weft/model/record"
)

// Deps are the backends of a Server. Live, Records and Hub are required; the
// routes of other backends that are nil return 404 or 501.
type Deps struct {
	Live     Live
	Records  Records
	Hub      *EventHub
	Prober   Prober
	Verifier Verifier
	// VerdictProver tests verdicts by experiment; nil: none can be tested.
	VerdictProver VerdictProver
	Marker        Marker
	CounterAdmin  CounterAdmin
	Diagnoser     Diagnoser
	FlowAnalyses  FlowAnalyses
	Routes        RouteMonitor
	Memory        KeyedMemory
	Lab           Lab
	Handling      *handling.Book // what operators do about incidents
	// Jobs returns the jobs that run; a new pointer if they have changed. May be nil.
	Jobs func() *[]record.Job
	// Collectives returns what NCCL's records show of running jobs. May be nil.
	Collectives func() ([]collectives.Group, []collectives.State)

	Console fs.FS                // the console, with index.html at its root
	Metrics *prometheus.Registry // of the whole process, to which the API adds its own; nil: a new registry
	Build   Build
	Log     *slog.Logger
}

// Build identifies a binary.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Server serves the API over HTTP.
type Server struct {
	cfg       Config
	deps      Deps
	log       *slog.Logger
	api       huma.API
	handler   http.Handler
	access    atomic.Pointer[access]
	metrics   *apiMetrics
	stateFeed *stateFeed

	requests requestLimit
	streams  chan struct{} // semaphore
	failures *tokenFailures
	audit    *auditLog // nil: writes are not recorded
	accepts  *acceptErrors
	conns    *connTable // of the main listener
	handlers runningHandlers
	grace    time.Duration   // for requests in progress at shutdown
	ended    context.Context // when requests in progress have had their time
	end      context.CancelFunc

	snapshots *snapshots
	stateJSON encodedState
	overview  overviewCache
	coalescer coalescer

	verifications verifications
	proofs        proofs

	mu     sync.Mutex
	fabric *fabric
}

// New checks the configuration and starts nothing.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if deps.Live == nil || deps.Records == nil || deps.Hub == nil {
		return nil, errors.New("api: Deps needs Live, Records and Hub")
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Metrics == nil {
		deps.Metrics = prometheus.NewRegistry()
		deps.Metrics.MustRegister(collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})) // cannot fail: the registry is empty
	}
	s := &Server{
		cfg: cfg, deps: deps, log: deps.Log,
		requests: requestLimit{max: cfg.MaxRequests}, streams: make(chan struct{}, cfg.MaxClients),
		failures: newTokenFailures(cfg.TokenFailures), grace: shutdownGrace,
		snapshots: &snapshots{live: deps.Live},
	}
	s.stateFeed = &stateFeed{snapshots: s.snapshots, hub: deps.Hub}
	s.ended, s.end = context.WithCancel(context.Background())
	if err := s.Reload(&cfg); err != nil {
		return nil, err
	}
	var err error
	if s.metrics, err = newAPIMetrics(deps.Metrics, s); err != nil {
		return nil, err
	}
	s.conns = s.newConnTable(cfg.MaxConnections, cfg.ReservedConnections, cfg.AddressConnections)
	s.accepts = &acceptErrors{log: deps.Log, count: s.metrics.acceptErrors.Inc}
	if cfg.AuditFile != "" {
		s.audit = &auditLog{
			path: cfg.AuditFile, maxSize: cfg.AuditMaxSize, log: deps.Log, failed: s.metrics.auditFailures.Inc,
		}
	}
	s.handler = s.routes()
	return s, nil
}

var security = []map[string][]string{{"token": {}}}

// routes builds the router.
func (s *Server) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(s.guard)
	r.NotFound(s.serveConsole)
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusMethodNotAllowed, r.Method+" is not allowed here")
	})
	s.operationalRoutes(r)
	s.healthCheckRoutes(r)

	cfg := huma.DefaultConfig("Weft", "1.0.0")
	cfg.CreateHooks = nil // no $schema in responses
	cfg.DocsPath = ""     // it would load scripts from other hosts
	cfg.SchemasPath = ""
	cfg.RejectUnknownQueryParameters = true // or a misspelt filter would be ignored
	cfg.Info.Description = "Telemetry of a datacenter fabric. Times are RFC 3339 by the fabric's clock, " +
		"field names carry units, " +
		"errors are RFC 9457 problem details."
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	s.api = humachi.New(r, cfg)
	s.api.UseMiddleware(s.checkAccess)
	for _, add := range []func(){
		s.topologyRoutes, s.stateRoutes, s.overviewRoutes, s.incidentRoutes, s.incidentActionRoutes, s.verifyRoutes, s.proofRoutes, s.diagnosisRoutes, s.flowRoutes, s.flowGroupRoutes, s.jobRoutes,
		s.flowFindingRoutes, s.routeRoutes, s.traceRoutes, s.counterRoutes, s.portRoutes, s.keyedRoutes, s.probeRoutes, s.markRoutes,
		s.faultRoutes, s.healthRoutes, s.filterRoutes, s.slowFlowRoutes, s.eventRoutes,
	} {
		add()
	}
	for _, schema := range s.api.OpenAPI().Components.Schemas.Map() {
		markListsNonNull(schema)
	}
	return r
}

// markListsNonNull declares lists as non-null in the schema, which fillLists ensures.
func markListsNonNull(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	markListsNonNull(s.Items)
	for _, p := range s.Properties {
		markListsNonNull(p)
	}
}

// Handler returns the handler of all requests. Events also need Run.
func (s *Server) Handler() http.Handler { return s.handler }

// OpenAPIDocument returns the OpenAPI document as JSON.
func (s *Server) OpenAPIDocument() ([]byte, error) { return s.api.OpenAPI().MarshalJSON() }

// publishChanges publishes changes of state, health and clock as events.
func (s *Server) publishChanges(ctx context.Context) {
	state := time.NewTicker(s.cfg.StateInterval)
	defer state.Stop()
	health := time.NewTicker(s.cfg.HealthInterval)
	defer health.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-state.C:
			s.stateFeed.tick(now)
		case <-health.C:
			if clients, _, _ := s.deps.Hub.stats(); clients > 0 {
				s.deps.Hub.Publish(s.health())
				s.deps.Hub.Publish(s.deps.Live.Clock())
			}
		}
	}
}
