package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/alerts"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/livestate"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
)

// Store is what a service needs of one. The service does not close it.
type Store interface {
	core.Store
	Size(ctx context.Context) (model.Bytes, error)
	SetLimits(r store.Retention, size model.Bytes) error
}

// Deps is what a service is given.
type Deps struct {
	Store   Store
	Console fs.FS // nil: there is none
	Build   api.Build
	Log     *slog.Logger
	// Prover tests verdicts by experiment; nil: none can be tested.
	Prover api.VerdictProver
	Level  *slog.LevelVar // of the log; nil: it stays
	// Stream is needed where sources other than DTA are enabled.
	Stream Stream
	// Forward takes what is decoded, for analyses in other processes; nil: they are here.
	// There is neither a store nor an API then.
	Forward control.Forwarder
	// Now is this host's wall clock; nil: time.Now.
	Now func() time.Time
	// Elapsed is the monotonic clock, from any beginning; nil: this process's.
	Elapsed func() time.Duration
}

// Service is a core whose input is sockets.
type Service struct {
	*core.Core
	cfg     Config // that it was made with
	applied Config // by the last Reload; of what it can change
	deps    Deps
	log     *slog.Logger
	fabric  *fabric
	input   *socketInput
	alerts  *alerts.Notifier // nil: there are no targets
	memory  model.Bytes      // limit of the process
	heap    model.Bytes      // of it, the Go heap's
}

// New opens sockets and memory, and starts nothing. Run or Close must follow.
func New(ctx context.Context, cfg Config, deps Deps) (_ *Service, err error) {
	s := &Service{cfg: cfg.clone(), applied: cfg.clone(), deps: deps, log: deps.Log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.fabric, err = readFabric(&cfg); err != nil {
		return nil, err
	}
	shares := memoryShares(&s.cfg, s.fabric)
	if s.memory, err = memoryLimit(cfg.Memory.Limit, shares); err != nil {
		return nil, err
	}
	s.heap = heapLimit(s.memory, shares)
	var last core.LastIDs
	if deps.Forward == nil {
		if last, err = s.continueStore(ctx); err != nil {
			return nil, err
		}
	}
	if s.input, err = newSocketInput(ctx, &s.cfg, s.fabric, &s.deps); err != nil {
		return nil, err
	}
	a, err := s.cfg.api()
	if err != nil {
		return nil, err
	}
	c := core.DefaultConfig(s.fabric.controllerConfig(&cfg, last))
	c.WriteQueue, c.StoreLimit, c.Controller.Forward = cfg.Store.Queue, cfg.Store.MaxSize, deps.Forward
	if deps.Forward == nil {
		c.API = &a
	}
	if len(cfg.Alerts.Targets) > 0 {
		if s.alerts, err = alerts.New(cfg.Alerts, alerts.Deps{Log: deps.Log}); err != nil {
			return nil, err
		}
	}
	devices, err := livestate.NewDevices(s.fabric.doc.Fabric, s.input.collector.Memory())
	if err != nil {
		return nil, err
	}
	var records core.Store // not a nil *Store
	if deps.Store != nil {
		records = deps.Store
	}
	if s.Core, err = core.New(c, core.Deps{
		Alerts:  s.alerts,
		Devices: devices, Store: records, Memory: s.input.collector.Memory(), Console: deps.Console, Build: deps.Build, Log: deps.Log,
		IncidentChange: s.logChange, Prover: deps.Prover,
	}, s.input); err != nil {
		return nil, err
	}
	s.input.core = s.Core
	if deps.Forward != nil {
		return s, nil
	}
	if err = s.Listen(); err != nil {
		return nil, fmt.Errorf("api.listen: %w", err)
	}
	return s, nil
}

// continueStore closes what an earlier controller left open, and returns its last numbers.
func (s *Service) continueStore(ctx context.Context) (last core.LastIDs, err error) {
	if last, err = core.ReadLastIDs(ctx, s.deps.Store); err != nil {
		return last, err
	}
	left, err := core.CloseLeftOpen(ctx, s.deps.Store)
	if left > 0 {
		s.log.Info("closed incidents that were open when the controller stopped", "incidents", left)
	}
	return last, err
}

// Reports is where DTA reports are received.
func (s *Service) Reports() netip.AddrPort { return s.input.collector.Addr() }

// SourceAddr is where the reports of a source are received; not valid: it is
// disabled.
func (s *Service) SourceAddr(k source.Kind) (a netip.AddrPort) {
	if k == sources.DTA.Kind {
		return s.Reports()
	}
	for _, l := range s.input.listeners {
		if l.Kind == k && !l.Dials {
			a = l.Addr()
		}
	}
	return a
}

// SourceAddresses are where the enabled sources receive reports, for people.
func (s *Service) SourceAddresses() (text string) {
	for _, src := range sources.All() {
		if a := s.SourceAddr(src.Kind); a.IsValid() {
			text += fmt.Sprintf(" %s=%s", src.Kind, a)
		}
	}
	return strings.TrimSpace(text)
}

// Run works until ctx ends. Then sockets are read out, what was received is
// analysed and written, and everything but the store is closed.
func (s *Service) Run(ctx context.Context) error {
	defer limitHeap(s.heap)()
	s.log.Info("memory limit", "process", model.FormatBytes(s.memory), "heap", model.FormatBytes(s.heap), "max_flows", s.fabric.maxFlows(&s.cfg))
	err := s.Core.Run(ctx)
	h := s.Health()
	s.log.Info("all received reports are analysed and stored", stageTotals(&h)...)
	return errors.Join(err, s.Close())
}

// Close frees what New opened, without Run.
func (s *Service) Close() error {
	var errs []error
	if s.Core != nil {
		errs = append(errs, s.Core.Close())
	}
	if s.input != nil {
		errs = append(errs, s.input.close())
	}
	return errors.Join(errs...)
}

// stageTotals is what came in and went out of every stage, for the log.
func stageTotals(h *api.Health) (list []any) {
	for i := range h.Stages {
		st := &h.Stages[i]
		lost := uint64(0)
		for _, l := range st.Losses {
			if !l.Expected {
				lost += l.Count
			}
		}
		list = append(list, slog.Group(st.Name, "in", st.In, "out", st.Out, "lost", lost))
	}
	return list
}

// logChange writes incidents to the log: when they are found, when their cause
// changes, when they are closed.
func (s *Service) logChange(change core.IncidentChange, in *incident.Incident) {
	switch change {
	case core.Found:
		s.log.Warn("incident", "id", in.ID, "severity", in.Severity(), "cause", in.Cause, "summary", in.Text)
	case core.Closed:
		s.log.Info("incident closed", "id", in.ID, "cause", in.Cause)
	}
}
