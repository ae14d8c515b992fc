package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// socketInput is the Input of a service: DTA reports go to a collector's memory,
// those of other sources to a stream, and the controller reads both.
type socketInput struct {
	cfg    *Config
	fabric *fabric
	log    *slog.Logger
	core   *core.Core

	collector *collector.Collector
	inbox     *core.Inbox
	recorder  *capture.Recorder // nil: nothing is recorded
	listeners []sourceListener  // of the sources other than DTA that are enabled
	stream    *streamSource     // nil: DTA is the only source

	ran    bool // Run has closed the collector and the recorder
	closed bool

	drained  chan struct{} // every report that was received is in memory
	finished chan struct{} // and the controller has read it

	counts atomic.Pointer[controllerCounts]
	last   atomic.Pointer[collector.Status] // before its memory was closed
}

// controllerCounts is a snapshot of what only the controller's goroutine may
// read.
type controllerCounts struct {
	stats control.Stats
	lost  uint64
}

// sourceListener is the socket of a source.
type sourceListener struct {
	source.Source
	source.Listener
}

// newSocketInput opens every socket.
func newSocketInput(ctx context.Context, cfg *Config, f *fabric, stream Stream, log *slog.Logger) (_ *socketInput, err error) {
	s := &socketInput{cfg: cfg, fabric: f, log: log, drained: make(chan struct{}), finished: make(chan struct{})}
	s.counts.Store(&controllerCounts{})
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	dta := cfg.DTA()
	c := collector.DefaultConfig()
	c.Listen, c.Workers, c.Rate, c.ReceiveBuffer = dta.Listen, dta.Workers, dta.Rate, int(dta.ReceiveBuffer)
	c.Status = netip.AddrPort{} // the API has it all
	c.Memory.Dir, c.Memory.Lists = dta.Memory, []list.Config{f.memory()}
	c.Translate.ListWait = cfg.Controller.Step
	c.Drained = s.drain
	if err := s.openRecorder(); err != nil {
		return nil, err
	}
	if s.recorder != nil {
		c.Tap = func(at model.Time, from netip.AddrPort, datagram []byte, stored bool) {
			s.record(sources.DTA.Kind, stored, at, from, s.collector.Addr(), datagram)
		}
	}
	if s.collector, err = collector.New(ctx, c, log); err != nil {
		return nil, err
	}
	if s.inbox, err = core.NewInbox(s.collector.Memory()); err != nil {
		return nil, err
	}
	return s, s.openSources(stream)
}

// openSources opens the sockets of the sources other than DTA.
func (s *socketInput) openSources(stream Stream) error {
	decoders, err := s.fabric.decoders(s.cfg, func(at model.Time, id dta.ListID, data []byte) { s.stream.publish(at, id, data) })
	if err != nil {
		return err
	}
	for _, src := range sources.All() {
		a, ok := s.cfg.Sources[src.Kind].(source.Adapter)
		if !ok || a.Address() == "" {
			continue
		}
		if s.stream == nil {
			if s.stream, err = newStreamSource(stream, s.fabric.lists); err != nil {
				return err
			}
		}
		l, err := a.OpenSocket(decoders[src.Kind])
		if err != nil {
			return fmt.Errorf("%s.listen: %w", src.Kind, err)
		}
		s.listeners = append(s.listeners, sourceListener{src, l})
	}
	return nil
}

// drain is called by the collector when it has received all that it will
// receive. Its memory is closed afterwards, so its readers must have ended.
func (s *socketInput) drain() {
	s.core.Stop()
	close(s.drained)
	<-s.finished
	<-s.core.Served()
	st := s.collector.Status()
	s.last.Store(&st)
}

// Run is part of core.Input. Sockets are read until ctx ends; the controller ends
// when nothing is left for it.
func (s *socketInput) Run(ctx context.Context) error {
	var all, sockets sync.WaitGroup
	var mu sync.Mutex
	var errs error
	start := func(f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				mu.Lock()
				errs = errors.Join(errs, err)
				mu.Unlock()
				s.core.Stop()
			}
		})
	}
	recording, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	recorded := make(chan error, 1)
	if s.recorder != nil {
		go func() { recorded <- s.recorder.Run(recording) }()
	} else {
		recorded <- nil
	}
	socket := func(f func(context.Context) error) {
		sockets.Add(1)
		start(func() error { defer sockets.Done(); return f(ctx) })
	}
	for _, l := range s.listeners {
		socket(func(ctx context.Context) error { return s.receive(ctx, l) })
	}
	start(func() error { return s.runController(context.WithoutCancel(ctx), &sockets) })
	start(func() error { return s.collector.Run(ctx) })
	all.Wait()
	halt()
	errs = errors.Join(errs, <-recorded)
	s.ran = true
	return errs
}

// close frees what newSocketInput opened and Run has not closed.
func (s *socketInput) close() error {
	var errs []error
	if s.closed {
		return nil
	}
	s.closed = true
	if s.collector != nil && !s.ran {
		errs = append(errs, s.collector.Close())
	}
	for _, l := range s.listeners {
		errs = append(errs, l.Close())
	}
	if s.recorder != nil && !s.ran {
		errs = append(errs, s.recorder.Close())
	}
	if s.stream != nil {
		errs = append(errs, s.stream.close())
	}
	return errors.Join(errs...)
}

// Clock is part of core.Input: the fabric's time is the wall's.
func (s *socketInput) Clock() api.Clock {
	now := time.Now()
	return api.Clock{Now: now, Wall: now, Mode: "serve", Pace: 1}
}

// Ready is part of core.Input.
func (s *socketInput) Ready() error {
	select {
	case <-s.drained:
		return errors.New("the controller is shutting down")
	default:
		return nil
	}
}

// runController is the controller's goroutine. It ends when the collector has
// drained.
func (s *socketInput) runController(ctx context.Context, sockets *sync.WaitGroup) error {
	defer close(s.finished)
	defer s.core.Loop.Close()
	now := model.TimeOf(time.Now())
	for {
		select {
		case <-s.drained:
			sockets.Wait()
			now := model.TimeOf(time.Now())
			err := s.poll(now)
			s.core.Controller.Flush()
			s.core.Controller.Tick(now)
			s.publishCounts()
			return err
		default:
		}
		s.core.Loop.RunPending()
		wall := model.TimeOf(time.Now())
		now = max(min(wall, now.Add(maxStride)), wall.Add(-maxLag))
		s.core.Controller.SetWallClock(wall)
		if err := s.poll(now); err != nil {
			return err
		}
		s.core.Controller.Tick(now)
		s.publishCounts()
		s.core.Loop.Sleep(ctx, s.cfg.Controller.Step)
	}
}

// maxStride is how far the controller's clock advances at once. A process that
// was not scheduled has reports in its sockets that arrived in time: its clock
// catches up gradually, so that they are read before they are too late.
const maxStride = 10 * time.Millisecond

// maxLag is how far the controller's clock may lag: under constant overload it
// would never catch up.
const maxLag = 2 * time.Second

// poll hands the controller all reports that have arrived.
func (s *socketInput) poll(now model.Time) error {
	n := 0
	c := s.core.Controller
	_, err := s.inbox.Poll(func(id dta.ListID, data []byte) {
		c.IngestReport(now, id, data)
		if n++; n%yieldEvery == 0 {
			runtime.Gosched()
			c.SetWallClock(model.TimeOf(time.Now())) // more has arrived meanwhile
		}
	})
	if s.stream != nil {
		s.stream.poll(func(at model.Time, id dta.ListID, data []byte) { c.IngestReport(min(at, now), id, data) })
	}
	return err
}

// yieldEvery is after how many reports the controller yields its core: Go would
// let it run for 10 ms at a time, and an answer of the API waits for a core
// several times.
const yieldEvery = 32

func (s *socketInput) publishCounts() {
	s.counts.Store(&controllerCounts{s.core.Controller.Stats(), s.inbox.Lost()})
}

// receive reads the socket of a source.
func (s *socketInput) receive(ctx context.Context, l sourceListener) error {
	var tap source.Tap
	if s.recorder != nil {
		tap = func(at model.Time, from, to netip.AddrPort, data []byte, used bool) {
			s.record(l.Kind, used, at, from, to, data)
		}
	}
	if err := l.Run(ctx, tap); err != nil {
		return fmt.Errorf("%s.listen: %w", l.Kind, err)
	}
	return nil
}
