package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// socketInput is the Input of a service: DTA reports go to a collector's memory,
// those of other sources to a stream, and the controller reads both.
type socketInput struct {
	cfg    *Config
	fabric *fabric
	log    *slog.Logger
	core   *core.Core
	door   *doorkeeper

	collector *collector.Collector
	inbox     *core.Inbox
	recorder  *capture.Recorder // nil: nothing is recorded
	listeners []sourceListener  // of the sources other than DTA that are enabled
	stream    *streamSource     // nil: DTA is the only source
	counters  counterQueue

	ran    bool // Run has closed the collector and the recorder
	closed bool

	drained  chan struct{} // every report that was received is in memory
	finished chan struct{} // and the controller has read it

	wall    func() time.Time
	clock   *core.FabricClock
	beats   atomic.Uint64 // of the controller's goroutine: it works
	dropped dropWatch     // of the controller's goroutine
	counts  atomic.Pointer[controllerCounts]
	last    atomic.Pointer[collector.Status] // before its memory was closed
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
func newSocketInput(ctx context.Context, cfg *Config, f *fabric, deps *Deps) (_ *socketInput, err error) {
	log := deps.Log
	s := &socketInput{cfg: cfg, fabric: f, log: log, drained: make(chan struct{}), finished: make(chan struct{}), wall: deps.Now}
	if s.wall == nil {
		s.wall = time.Now
	}
	s.clock = core.NewFabricClock(s.wall, deps.Elapsed, log)
	s.counts.Store(&controllerCounts{})
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	keys, err := readKeys(cfg)
	if err != nil {
		return nil, err
	}
	if s.door, err = newDoorkeeper(cfg, f, log, s.wall); err != nil {
		return nil, err
	}
	s.door.setKeys(cfg, f, keys, log)
	dta := cfg.DTA()
	c := collector.DefaultConfig()
	c.Gate = s.door.dta
	c.Listen, c.Workers, c.Rate, c.ReceiveBuffer = dta.Listen, dta.Workers, dta.Rate, int(f.receiveBuffer(cfg))
	c.Status = netip.AddrPort{} // the API has it all
	c.Memory = collector.MemoryConfig{
		Dir: dta.Memory, Lists: []list.Config{f.memory()}, KeyWrites: []keywrite.Config{f.keyed.Ports}, Counts: &f.keyed.Counters, Postcards: &f.keyed.Cards,
	}
	c.Translate.ListWait = cfg.Controller.Step
	c.Drained = s.drain
	c.Now, c.Panic = s.clock.Now, s.onPanic(sources.DTA.Kind)
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
	if granted, err := grantedBuffer(f.receiveBuffer(cfg)); err == nil && granted < f.receiveBuffer(cfg) {
		log.Warn(SmallBuffer(f.receiveBuffer(cfg), granted))
	}
	if s.inbox, err = core.NewInbox(s.collector.Memory()); err != nil {
		return nil, err
	}
	return s, s.openSources(deps.Stream)
}

// openSources opens the sockets of the sources other than DTA.
func (s *socketInput) openSources(stream Stream) error {
	decoders, err := s.fabric.decoders(s.cfg, s, recordSink{
		report:  func(at model.Time, id dta.ListID, data []byte) { s.stream.publish(at, id, data) },
		reading: s.counters.addReading, sample: s.counters.addSample, flow: s.counters.addFlow,
		route:       func(u *bgproute.Update) { s.core.Controller.IngestRoute(u) },
		collectives: func(d *nccl.Dump) int { return s.core.Controller.IngestCollectives(s.clock.Now(), d) },
	})
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
		l, err := a.OpenSocket(decoders[src.Kind], s.door.guards[src.Kind])
		if err != nil {
			if src.Dials { // the error has its key
				return err
			}
			return fmt.Errorf("%s.listen: %w", src.Kind, err)
		}
		s.listeners = append(s.listeners, sourceListener{src, l})
	}
	return nil
}

// onPanic counts the panics of a source's datagrams.
func (s *socketInput) onPanic(k source.Kind) func(v any, data []byte) {
	return func(v any, data []byte) { s.core.Panics().Add(control.NewPanic(string(k)+" datagram", v, 0, data)) }
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

// Ready is part of core.Input.
func (s *socketInput) Ready() error {
	select {
	case <-s.drained:
		return errors.New("the controller is shutting down")
	default:
		return nil
	}
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
