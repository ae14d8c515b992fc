package core

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/alerts"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/handling"
	"github.com/weft-telemetry/weft/control/livestate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Config is what a Core is made of.
type Config struct {
	Controller control.Config
	// API is nil where no client asks.
	API *api.Config

	WriteInterval    time.Duration // between two writes to the store
	WriteQueue       int           // records that may wait for the store
	MaintainInterval time.Duration // between two enforcements of retention
	StoreLimit       model.Bytes   // shown by health
	// StallAfter is after how long without progress a stage that has work is stalled.
	StallAfter time.Duration
}

// DefaultConfig suits a service.
func DefaultConfig(c control.Config) Config {
	return Config{
		Controller: c, WriteInterval: 250 * time.Millisecond, WriteQueue: 200_000, MaintainInterval: time.Minute,
		StallAfter: 10 * time.Second,
	}
}

// Input is where reports come from. Clock, Ready and Stages answer at once, for
// any goroutine.
type Input interface {
	// Run feeds the controller until ctx ends or there is no more input, flushes
	// it, and closes the event loop. Only this goroutine calls the controller.
	Run(ctx context.Context) error
	// Clock is the fabric's time.
	Clock() api.Clock
	// Ready returns why there is nothing to see yet, or nil.
	Ready() error
	// Stages is the account of the pipeline up to the analyses.
	Stages() []api.Stage
}

// RefusingInput is an Input that refuses reports of some sources. RefusedSources
// answers at once, for any goroutine.
type RefusingInput interface {
	RefusedSources() []api.RefusedSource
}

// GuidingInput is an Input that can say how to get data into it. NoData answers at
// once, for any goroutine.
type GuidingInput interface {
	NoData() api.NoData
}

// AlertingInput is an Input that has alerts of its own. Alerts answers at once, for
// any goroutine.
type AlertingInput interface {
	Alerts() []string
}

// AlertingStore is a Store that has alerts of its own, such as a repair. Alerts
// answers at once, for any goroutine.
type AlertingStore interface {
	Alerts() []string
}

// Deps is what a Core is given.
type Deps struct {
	Devices control.Devices
	Store   Store   // nil: records go to Records alone
	Lab     api.Lab // nil: faults cannot be injected
	// Alerts sends incidents to other systems; nil: none are sent.
	Alerts *alerts.Notifier
	// Memory is read by key, until the API answers no more; nil: there is none.
	Memory  *translate.Memory
	Console fs.FS // nil: there is none
	Build   api.Build
	Log     *slog.Logger
	// Prover tests verdicts by experiment; nil: none can be tested.
	Prover api.VerdictProver

	// Records and Incident, if not nil, see everything that the controller makes,
	// in its goroutine; they must neither wait nor keep it.
	Records  func(b *record.Batch)
	Incident func(in *incident.Incident)
	// IncidentChange, if not nil, is called for changes that are worth a log line.
	IncidentChange func(change IncidentChange, in *incident.Incident)
}

// Core is a controller with its store and API.
type Core struct {
	*control.View
	Controller *control.Controller
	Loop       *EventLoop
	Writer     *BatchWriter // nil without a store

	cfg      Config
	deps     Deps
	log      *slog.Logger
	input    Input
	hub      *api.EventHub
	tracker  *HealthTracker
	panics   *PanicLog
	progress progressWatch
	began    time.Time
	server   *api.Server
	listener net.Listener
	addr     net.Addr
	changes  incidentChanges
	handled  *handling.Book // nil without an API, or a store that keeps it
	stored   atomic.Pointer[storeStatus]
	final    atomic.Pointer[api.Health] // when Run had ended
	stop     context.CancelFunc
	served   chan struct{} // closed when the API answers no more
}

// New makes a core and starts nothing. The input may still be incomplete: it is
// used from Run on.
func New(cfg Config, deps Deps, input Input) (*Core, error) {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	c := &Core{
		Loop: NewEventLoop(), cfg: cfg, deps: deps, log: deps.Log, input: input, hub: api.NewEventHub(256, 1024),
		tracker: NewHealthTracker(time.Now()), changes: incidentChanges{}, served: make(chan struct{}),
		panics: NewPanicLog(deps.Log), progress: progressWatch{after: cfg.StallAfter}, began: time.Now(),
	}
	c.stored.Store(&storeStatus{limit: cfg.StoreLimit})
	if deps.Store != nil {
		c.Writer = NewBatchWriter(deps.Store, cfg.WriteInterval, cfg.WriteQueue, deps.Log)
	}
	var err error
	out := control.Output{Records: c.addRecords, Incident: c.addIncident, Panic: c.panics.Add}
	if c.Controller, err = control.New(cfg.Controller, deps.Devices, out); err != nil {
		return nil, err
	}
	c.View = c.Controller.View()
	if cfg.API == nil {
		return c, nil
	}
	b := control.NewBackend(c.Controller, c.Loop.Call, c.hub)
	var memory api.KeyedMemory
	if deps.Memory != nil {
		if memory, err = livestate.New(c.Fabric(), cfg.Controller.Epoch, deps.Memory); err != nil {
			return nil, err
		}
	}
	if s, ok := deps.Store.(handling.Store); ok {
		if c.handled, err = handling.Open(context.Background(), s); err != nil {
			return nil, err
		}
	}
	if deps.Alerts != nil && c.handled != nil {
		deps.Alerts.SetMuted(func(id string) bool { return c.handled.Muted(id, c.input.Clock().Now) })
	}
	c.server, err = api.New(*cfg.API, api.Deps{
		Live: c, Records: c.Writer.ReadThrough(deps.Store), Hub: c.hub, Prober: b, Verifier: b, VerdictProver: deps.Prover, Marker: b, CounterAdmin: b, Diagnoser: b,
		FlowAnalyses: b, Routes: b, Memory: memory, Lab: deps.Lab, Handling: c.handled, Jobs: c.Controller.JobRecords, Collectives: c.Controller.Collectives, Console: deps.Console, Build: deps.Build, Log: deps.Log,
	})
	return c, err
}

// Listen opens the API's socket.
func (c *Core) Listen() (err error) {
	if c.listener, err = net.Listen("tcp", c.cfg.API.Listen); err == nil {
		c.addr = c.listener.Addr()
	}
	return err
}

// Addr is where the API listens.
func (c *Core) Addr() net.Addr { return c.addr }

// Handler answers the API's requests in process.
func (c *Core) Handler() http.Handler { return c.server.Handler() }

// ForgetAnswers makes the API look again for what it answered less than a second ago: of an
// input that stops and goes on, which may have advanced since by more than that.
func (c *Core) ForgetAnswers() { c.server.ForgetAnswers() }

// ReloadAPI takes new tokens, tenants and certificates.
func (c *Core) ReloadAPI(cfg *api.Config) error { return c.server.Reload(cfg) }

// Panics counts the panics that were recovered, of the input's goroutines, too.
func (c *Core) Panics() *PanicLog { return c.panics }

// Hub publishes events to clients.
func (c *Core) Hub() *api.EventHub { return c.hub }

// Served is closed when the API answers no more.
func (c *Core) Served() <-chan struct{} { return c.served }

// Stop ends Run.
func (c *Core) Stop() { c.stop() }

// Run feeds, writes and serves until ctx ends or a part of it fails. Then the
// input is read out, and what it gave is analysed and written. The store stays
// open.
func (c *Core) Run(ctx context.Context) error {
	ctx, c.stop = context.WithCancel(ctx)
	defer c.stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs error
	start := func(f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil {
				mu.Lock()
				errs = errors.Join(errs, err)
				mu.Unlock()
				c.stop()
			}
		})
	}
	writing, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	written := make(chan error, 1)
	if c.Writer != nil {
		go func() { written <- c.Writer.Run(writing) }()
		start(c.maintain)
	} else {
		written <- nil
	}
	if c.deps.Alerts != nil {
		start(c.deps.Alerts.Run)
	}
	start(c.watchProgress)
	start(c.serve)
	start(c.input.Run)
	wg.Wait()
	halt()
	errs = errors.Join(errs, <-written)
	c.listener = nil // closed by the server
	h := c.Health()
	c.final.Store(&h)
	return errs
}

// serve answers clients until ctx ends.
func (c *Core) serve(ctx context.Context) error {
	defer close(c.served)
	if c.listener == nil {
		return nil
	}
	return c.server.Serve(ctx, c.listener)
}

// Close frees what New and Listen opened, without Run.
func (c *Core) Close() error {
	if c.listener == nil {
		return nil
	}
	return c.listener.Close()
}

// Clock is part of api.Live.
func (c *Core) Clock() api.Clock { return c.input.Clock() }

// Ready is part of api.Live.
func (c *Core) Ready() error { return c.input.Ready() }

// Health is part of api.Live. After Run it shows how that ended.
func (c *Core) Health() api.Health {
	if h := c.final.Load(); h != nil {
		return *h
	}
	stages := c.input.Stages()
	if c.Writer != nil {
		stages = append(stages, c.Writer.HealthStage())
	}
	if c.deps.Alerts != nil {
		stages = append(stages, alertStage(c.deps.Alerts))
	}
	now := time.Now()
	h := c.tracker.Health(now, stages)
	h.Panics = c.panics.Count()
	c.AddLiveness(&h)
	h.Refused = []api.RefusedSource{}
	if r, ok := c.input.(RefusingInput); ok {
		h.Refused = r.RefusedSources()
	}
	if a := c.panics.alert(now); a != "" {
		h.State, h.Alerts = "degraded", append(h.Alerts, a)
	}
	if c.Writer != nil {
		if a := c.Writer.alert(now); a != "" {
			h.Alerts = append(h.Alerts, a)
		}
		if s, ok := c.Writer.store.(AlertingStore); ok {
			h.Alerts = append(h.Alerts, s.Alerts()...)
		}
	}
	if in, ok := c.input.(AlertingInput); ok {
		for _, a := range in.Alerts() {
			h.State, h.Alerts = "degraded", append(h.Alerts, a)
		}
	}
	if c.deps.Alerts != nil {
		addAlertProblems(&h, c.deps.Alerts)
	}
	addStalls(&h, c.stalls())
	if in, ok := c.input.(GuidingInput); ok && !receives(stages) {
		guide := in.NoData()
		if h.NoData = &guide; h.State == "ok" {
			h.State = "no-data"
		}
	}
	s := c.stored.Load()
	h.Store.Bytes, h.Store.MaxBytes = int64(s.size), int64(s.limit)
	h.Store.Memory, h.Store.Expired = int64(s.memory), s.removed
	return h
}

// addRecords hands records on, and reports incidents to clients.
func (c *Core) addRecords(b *record.Batch) {
	if c.Writer != nil {
		c.Writer.Add(b)
	}
	if c.deps.Records != nil {
		c.deps.Records(b)
	}
	for i := range b.Incidents {
		in := api.NewIncident(&b.Incidents[i])
		if c.handled != nil {
			in.Handling = api.NewHandling(c.handled.State(in.ID))
		}
		c.hub.Publish(in)
		if c.deps.Alerts != nil {
			c.deps.Alerts.Update(b.Incidents[i])
		}
	}
}

func (c *Core) addIncident(in *incident.Incident) {
	if c.deps.Incident != nil {
		c.deps.Incident(in)
	}
	if c.deps.IncidentChange == nil {
		return
	}
	if change, ok := c.changes.classify(in); ok {
		c.deps.IncidentChange(change, in)
	}
}
