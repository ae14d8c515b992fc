package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/proof"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/store/embedded"
)

// Options are what a System is made of.
type Options struct {
	Config
	Began         time.Time          // what the fabric's clocks show at first; zero: now
	Scenario      *scenario.Scenario // instead of the demo's fabric; nil: that
	Pace          float64            // simulated seconds per second of wall time
	FaultInterval time.Duration      // of wall time, between faults of the programme; 0: none
	Store         string             // DuckDB file
	Listen        string             // address of the API and the console
	AnswerTime    time.Duration      // how long an answer may take; 0: as of a service
	Pprof         string             // loopback address of the Go profiler; empty: none
	Console       fs.FS              // nil: there is none
	Build         api.Build
	Log           *slog.Logger
	Event         func(line string) // called for every fault, and for every change of an incident
}

// System is the demo: a simulation, a director, a store, an API.
type System struct {
	core          *core.Core
	sim           *Simulation
	director      *Director
	store         *embedded.Store
	began         time.Time // what the fabric's clocks show at 0 of the simulation
	pace          pace
	faultInterval time.Duration
	event         func(line string)
	end           engine.Time // of a scenario

	faults atomic.Pointer[[]api.Fault] // newest first
}

// Bounds of the store and of the records that wait for it. They are such that all
// are reached within the first hour: the demo needs no more afterwards
// (docs/demo.md has the account).
const (
	maxStore         = 256 * model.MiB
	storeMemory      = 96 * model.MiB // of DuckDB
	storeHot         = 32 * model.MiB // for the newest records
	maintainInterval = 20 * time.Second
)

// NewSystem opens store and socket, and starts nothing. Run or Close must
// follow.
func NewSystem(o Options) (_ *System, err error) {
	if o.Began.IsZero() {
		o.Began = time.Now()
	}
	// A whole second, so that the fabric's milliseconds are those of its clock.
	s := &System{began: o.Began.Truncate(time.Second), faultInterval: o.FaultInterval, event: o.Event}
	s.pace.set(o.Pace)
	s.faults.Store(&[]api.Fault{})
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	keep := embedded.DefaultConfig()
	keep.MaxSize, keep.Memory, keep.CacheSize = maxStore, storeMemory, storeHot
	if o.AnswerTime > 0 {
		keep.QueryTime = o.AnswerTime
	}
	if s.store, err = embedded.Open(o.Store, keep); err != nil {
		return nil, err
	}
	if _, err = core.CloseLeftOpen(context.Background(), s.store); err != nil {
		return nil, err
	}
	if err = s.simulate(&o); err != nil {
		return nil, err
	}
	s.director = NewDirector(s.sim)
	s.director.onInject = func(f *Injected) { s.reportEvent("injected", f.Kind+": "+f.What) }
	last, err := core.ReadLastIDs(context.Background(), s.store)
	if err != nil {
		return nil, err
	}
	controller := s.sim.demoController(o.Config, s.began)
	if o.Scenario != nil {
		controller = s.sim.scenarioController(o.Config, s.began)
	}
	controller.Incidents.LastID, controller.LastDiagnosis = last.Incident, last.Diagnosis // of an earlier demo in the same file
	cfg := core.DefaultConfig(controller)
	cfg.MaintainInterval, cfg.StoreLimit = maintainInterval, maxStore
	a := api.DefaultConfig()
	a.Listen, a.Pprof = o.Listen, o.Pprof
	if o.AnswerTime > 0 {
		a.RequestTimeout = o.AnswerTime
	}
	cfg.API = &a
	if s.core, err = core.New(cfg, core.Deps{
		Devices: s.sim.devices, Store: s.store, Memory: s.sim.collector.Memory(), Lab: s, Console: o.Console, Build: o.Build, Log: o.Log,
		Incident: s.director.ObserveIncident, IncidentChange: s.reportChange,
		Prover: &proof.Prover{Settings: s.sim.scenario},
	}, demoInput{s}); err != nil {
		return nil, err
	}
	s.sim.attach(s.core.Controller)
	if err = s.core.Listen(); err != nil {
		return nil, fmt.Errorf("live: %w; if another demo is running, --listen takes another address", err)
	}
	return s, nil
}

// simulate makes the simulation of the demo, or of a scenario.
func (s *System) simulate(o *Options) (err error) {
	if o.Scenario == nil {
		s.end = engine.Forever
		s.sim, err = newDemoSimulation(o.Config)
		return err
	}
	if err := NeedTelemetry(o.Scenario); err != nil {
		return err
	}
	run := *o.Scenario
	run.Agents, run.Expect, run.ExpectTraces, run.ExpectDiagnoses = nil, nil, nil, nil
	s.end = engine.Of(run.Duration)
	s.sim, err = newSimulation(&run, simulationConfig{step: stepOf(&run), maxWait: pollAfter, agents: scenarioAgents(o.Scenario.Agents)})
	return err
}

// scenarioController is what the controller of a scenario goes by that is watched.
func (m *Simulation) scenarioController(demo Config, epoch time.Time) control.Config {
	cfg := m.demoController(demo, epoch)
	cfg.Jobs, cfg.SampleInterval = nil, m.cfg.step
	cfg.Traces.Trace.CloseAfter = m.traceClose()
	cfg.Traces.Trace.RouteSettle = cfg.Traces.Trace.CloseAfter
	cfg.Ports.States.Skew = max(cfg.Ports.States.Skew, maxSkew(m.scenario))
	cfg.Ports.States.MaxAge += cfg.Ports.States.Skew
	m.followPrograms(&cfg)
	return cfg
}

// NeedTelemetry returns an error for a scenario whose switches report nothing.
func NeedTelemetry(s *scenario.Scenario) error {
	if len(s.Telemetry) > 0 {
		return nil
	}
	return fmt.Errorf("scenario %q has no telemetry, want programs such as \"- {kind: flowset}\" under telemetry", s.Name)
}

// Addr is where the API listens.
func (s *System) Addr() net.Addr { return s.core.Addr() }

// Run simulates, writes and serves until ctx ends.
func (s *System) Run(ctx context.Context) error {
	return errors.Join(s.core.Run(ctx), s.Close())
}

// Close frees what NewSystem opened, without Run.
func (s *System) Close() error {
	var errs []error
	if s.core != nil {
		errs = append(errs, s.core.Close())
		s.core = nil
	}
	if s.sim != nil {
		errs = append(errs, s.sim.close())
		s.sim = nil
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
		s.store = nil
	}
	return errors.Join(errs...)
}

// wallTime is an instant of the fabric on the wall.
func (s *System) wallTime(t model.Time) time.Time { return s.began.Add(time.Duration(t)) }

// reportChange reports what happened to an incident.
func (s *System) reportChange(change core.IncidentChange, in *incident.Incident) {
	switch change {
	case core.Found:
		s.reportEvent("FOUND", fmt.Sprintf("i%d %s: %s", in.ID, in.Cause, in.Text))
	case core.Closed:
		s.reportEvent("closed", fmt.Sprintf("i%d %s", in.ID, in.Cause))
	case core.Merged:
		s.reportEvent("merged", fmt.Sprintf("i%d %s: merged into i%d", in.ID, in.Cause, in.MergedInto))
	}
}

// reportEvent prints a line with the simulated time.
func (s *System) reportEvent(what, text string) {
	if s.event != nil {
		s.event(fmt.Sprintf("%12v  %-8s %s", time.Duration(s.sim.Now()), what, text))
	}
}
