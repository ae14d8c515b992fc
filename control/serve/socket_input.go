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
	"github.com/weft-telemetry/weft/ingest/erspan"
	"github.com/weft-telemetry/weft/ingest/intreport"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
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
	ints      *udp.Conn
	mirrors   *erspan.Listener
	stream    *streamSource // nil: DTA is the only source
	decoders  *decoders

	ran    bool // Run has closed the collector, the mirrors' socket and the recorder
	closed bool

	drained  chan struct{} // every report that was received is in memory
	finished chan struct{} // and the controller has read it

	counts atomic.Pointer[controllerCounts]
	ours   atomic.Pointer[intCounts]
	last   atomic.Pointer[collector.Status] // before its memory was closed
}

// controllerCounts is a snapshot of what only the controller's goroutine may
// read.
type controllerCounts struct {
	stats control.Stats
	lost  uint64
}

// intCounts is a snapshot of what the socket of INT reports counts.
type intCounts struct {
	socket udp.Stats
	reader intreport.Stats
}

// newSocketInput opens every socket.
func newSocketInput(ctx context.Context, cfg *Config, f *fabric, stream Stream, log *slog.Logger) (_ *socketInput, err error) {
	s := &socketInput{cfg: cfg, fabric: f, log: log, drained: make(chan struct{}), finished: make(chan struct{})}
	s.counts.Store(&controllerCounts{})
	s.ours.Store(&intCounts{})
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	c := collector.DefaultConfig()
	c.Listen, c.Workers, c.Rate, c.ReceiveBuffer = cfg.DTA.Listen, cfg.DTA.Workers, cfg.DTA.Rate, int(cfg.DTA.Receive)
	c.Status = netip.AddrPort{} // the API has it all
	c.Memory.Dir, c.Memory.Lists = cfg.DTA.Memory, []list.Config{f.memory()}
	c.Translate.ListWait = cfg.Controller.Step
	c.Drained = s.drain
	if err := s.openRecorder(); err != nil {
		return nil, err
	}
	if s.recorder != nil {
		c.Tap = func(at model.Time, from netip.AddrPort, datagram []byte, stored bool) {
			s.record(capture.DTA, stored, at, from, s.collector.Addr(), datagram)
		}
	}
	if s.collector, err = collector.New(ctx, c, log); err != nil {
		return nil, err
	}
	if s.inbox, err = core.NewInbox(s.collector.Memory()); err != nil {
		return nil, err
	}
	if cfg.INT.Listen.IsValid() || cfg.ERSPAN.Listen.IsValid() {
		if s.stream, err = newStreamSource(stream, f.lists); err != nil {
			return nil, err
		}
	}
	if s.decoders, err = f.decoders(cfg, false, func(at model.Time, id dta.ListID, data []byte) { s.stream.publish(at, id, data) }); err != nil {
		return nil, err
	}
	if cfg.INT.Listen.IsValid() {
		if s.ints, err = udp.Listen(udp.DefaultConfig(cfg.INT.Listen)); err != nil {
			return nil, fmt.Errorf("int.listen: %w", err)
		}
	}
	if cfg.ERSPAN.Listen.IsValid() {
		if s.mirrors, err = erspan.Listen(cfg.ERSPAN.Listen, s.decoders.erspan); err != nil {
			return nil, fmt.Errorf("erspan.listen: %w; weft trace --pcap reads a capture of them", err)
		}
		s.mirrors.Tap = func(at model.Time, from netip.Addr, packet []byte, mirrored bool) {
			s.record(capture.ERSPAN, mirrored, at, netip.AddrPortFrom(from, 0), netip.AddrPortFrom(cfg.ERSPAN.Listen, 0), packet)
		}
	}
	return s, nil
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
	if s.ints != nil {
		socket(s.receiveINT)
	}
	if s.mirrors != nil {
		socket(s.receiveMirrors)
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
	if s.ints != nil {
		errs = append(errs, s.ints.Close())
	}
	if s.mirrors != nil && !s.ran {
		errs = append(errs, s.mirrors.Close())
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

// receiveINT reads the socket of INT reports, and what the kernel has queued at
// the end.
func (s *socketInput) receiveINT(ctx context.Context) error {
	var ended, got time.Time
	for {
		if ctx.Err() != nil && ended.IsZero() {
			ended = time.Now()
			got = ended
		}
		n, err := s.ints.Receive(func(from netip.AddrPort, datagram []byte) {
			at, before := model.TimeOf(time.Now()), s.decoders.ints.Stats().Used
			s.decoders.ints.HandleDatagram(at, datagram)
			s.record(capture.INT, s.decoders.ints.Stats().Used > before, at, from, s.ints.Local(), datagram)
		})
		s.ours.Store(&intCounts{s.ints.Stats(), s.decoders.ints.Stats()})
		if err != nil {
			return fmt.Errorf("int.listen: %w", err)
		}
		now := time.Now()
		if n > 0 {
			got = now
		}
		if !ended.IsZero() && (now.Sub(got) >= drainIdle || now.Sub(ended) >= drainLimit) {
			return nil
		}
	}
}

// At the end a socket is read until it was idle for drainIdle, and no longer than
// drainLimit. One empty read does not show that the queue is empty: a signal may
// have interrupted it.
const (
	drainIdle  = 10 * time.Millisecond
	drainLimit = time.Second
)

// receiveMirrors reads the socket of ERSPAN mirrors.
func (s *socketInput) receiveMirrors(ctx context.Context) error {
	var data []byte
	return s.mirrors.Run(ctx, func(at model.Time, m *mirror.Mirror) {
		data = m.AppendTo(data[:0])
		s.stream.publish(at, s.fabric.lists.Mirrors.First, data)
	})
}
