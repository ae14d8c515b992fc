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

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
)

// Options are what a System is made of.
type Options struct {
	Config
	Pace   float64       // seconds of the fabric in one of the wall
	Every  time.Duration // of the wall, between faults; 0: none by itself
	Store  string        // DuckDB file
	Listen string        // address of the API and the page
	Pprof  string        // loopback address of the Go profiler; empty: none
	Page   fs.FS         // nil: there is none
	Build  api.Build
	Log    *slog.Logger
	Found  func(line string) // one for every fault, and for every incident and its changes
}

// System is a lab with everything around it: a director, a store, an API.
type System struct {
	*control.View
	lab      *Lab
	director *Director
	player   *Player
	store    *embedded.Store
	keeper   *control.Keeper
	hub      *api.EventHub
	server   *api.Server
	listener net.Listener
	began    time.Time // of the wall; the fabric's clocks show 0 then
	log      *slog.Logger
	found    func(line string)
	told     map[uint64]anomaly.Cause

	faults  atomic.Pointer[[]api.Fault] // newest first
	stages  atomic.Pointer[[]api.Stage]
	account *control.HealthTracker

	tended    atomic.Pointer[store.Upkeep] // last; nil: not yet
	forgotten atomic.Uint64                // records
}

// Bounds of the store and of what waits for it. They are such that all are
// reached within the first hour: what a demo takes then, it takes for good
// (docs/demo.md has the account).
const (
	keepEvery   = 250 * time.Millisecond
	keepMost    = 200_000
	maxStore    = 256 * model.MiB
	storeMemory = 96 * model.MiB // of DuckDB
	storeHot    = 32 * model.MiB // for the newest records
)

// NewSystem opens store and socket, and starts nothing. Run or Close must
// follow.
func NewSystem(o Options) (_ *System, err error) {
	began := time.Now()
	// A whole second, so that the fabric's milliseconds are those of its clock.
	s := &System{hub: api.NewEventHub(256, 1024), began: began.Truncate(time.Second), account: control.NewAccount(began), log: o.Log, found: o.Found, told: map[uint64]anomaly.Cause{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	keep := embedded.DefaultConfig()
	keep.MaxSize, keep.Memory, keep.Hot = maxStore, storeMemory, storeHot
	if s.store, err = embedded.Open(o.Store, keep); err != nil {
		return nil, err
	}
	s.keeper = control.NewBatchWriter(s.store, keepEvery, keepMost, o.Log)
	if s.lab, err = newAt(o.Config, s.began, control.Output{Records: s.keep, Incident: s.hear}); err != nil {
		return nil, err
	}
	s.View = s.lab.Control.View()
	s.director = NewDirector(s.lab)
	s.player = newPlayer(s.lab, s.director, o.Pace, o.Every)
	s.player.after = s.snapshot
	s.director.broke = func(f *Injected) { s.say("broken", f.Kind+": "+f.What) }
	s.faults.Store(&[]api.Fault{})
	s.snapshot()
	front := control.NewBackend(s.lab.Control, s.player.Call, s.hub)
	cfg := api.DefaultConfig()
	cfg.Listen, cfg.Pprof = o.Listen, o.Pprof
	deps := api.Deps{
		Live: s, Records: s.keeper.Ahead(s.store), Hub: s.hub, Lab: s, Prober: front, Marker: front, CounterAdmin: front, Diagnoser: front, Console: o.Page, Build: o.Build, Log: o.Log,
	}
	if s.server, err = api.New(cfg, deps); err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", o.Listen); err != nil {
		return nil, fmt.Errorf("live: listen: %w; another demo may be running, --listen takes another address", err)
	}
	return s, nil
}

// Addr is where the API listens.
func (s *System) Addr() net.Addr { return s.listener.Addr() }

// Run plays, keeps and serves until ctx ends, then writes what is left.
func (s *System) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	keeping, halt := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan error, 1)
	go func() { kept <- s.keeper.Run(keeping) }()
	tended := make(chan struct{})
	go func() { defer close(tended); s.tend(ctx) }()
	ends := make(chan error, 2)
	go func() { ends <- s.player.Run(ctx) }()
	go func() { ends <- s.server.Serve(ctx, s.listener) }()
	err := <-ends
	stop()
	err = errors.Join(err, <-ends)
	s.listener = nil // closed by the server
	s.lab.Control.Flush()
	halt()
	<-tended
	return errors.Join(err, <-kept, s.Close())
}

// tendEvery is how often the store is tended: what is too old or too much goes.
const tendEvery = 20 * time.Second

// tend keeps the store within its bounds until ctx ends.
func (s *System) tend(ctx context.Context) {
	t := time.NewTicker(tendEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			done, err := s.store.Maintain(ctx, s.time(s.player.Now()))
			if err != nil {
				if ctx.Err() == nil {
					s.log.Error("the store was not tended", "error", err)
				}
				continue
			}
			s.tended.Store(&done)
			for _, r := range done.Removed {
				s.forgotten.Add(r.Age + r.Size)
			}
		}
	}
}

// Close frees what NewSystem opened, without Run.
func (s *System) Close() error {
	var errs []error
	if s.lab != nil {
		errs = append(errs, s.lab.Close())
		s.lab = nil
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
		s.store = nil
	}
	if s.listener != nil {
		errs = append(errs, s.listener.Close())
		s.listener = nil
	}
	return errors.Join(errs...)
}

// keep hands records on, and tells clients of incidents.
func (s *System) keep(b *record.Batch) {
	s.keeper.Add(b)
	for i := range b.Incidents {
		s.hub.Publish(api.NewIncident(&b.Incidents[i]))
	}
}

// hear lets the director compare, and tells of what is new.
func (s *System) hear(in *incident.Incident) {
	s.director.Hear(in)
	was, known := s.told[in.ID]
	if in.Closed {
		delete(s.told, in.ID)
	}
	switch {
	case in.MergedInto != 0 && known:
		s.say("joined", fmt.Sprintf("i%d %s: it is part of i%d", in.ID, in.Cause, in.MergedInto))
	case in.MergedInto != 0 || in.Severity() == anomaly.Notice:
	case in.Closed && known:
		s.say("over", fmt.Sprintf("i%d %s", in.ID, in.Cause))
	case !in.Closed && (!known || was != in.Cause):
		s.told[in.ID] = in.Cause
		s.say("FOUND", fmt.Sprintf("i%d %s: %s", in.ID, in.Cause, in.Text))
	}
}

// say tells a line with the fabric's time.
func (s *System) say(what, text string) {
	if s.found != nil {
		s.found(fmt.Sprintf("%12v  %-6s %s", time.Duration(s.lab.Now()), what, text))
	}
}
