package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/ingest/erspan"
	"github.com/weft-telemetry/weft/ingest/intreport"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Store is what a service needs of one. The service does not close it.
type Store interface {
	control.Store
	api.Records
	Maintain(ctx context.Context, now time.Time) (store.Upkeep, error)
	Size(ctx context.Context) (model.Bytes, error)
	SetLimits(r store.Retention, size model.Bytes) error
}

// Deps is what a service is given.
type Deps struct {
	Store Store
	Page  fs.FS // of the console; nil: there is none
	Build api.Build
	Log   *slog.Logger
	Level *slog.LevelVar // of the log; nil: it stays
	// Stream is needed where INT reports or ERSPAN mirrors are taken.
	Stream Stream
}

// Service listens, analyses, keeps and answers.
type Service struct {
	*control.View
	cfg    Config // that it was made with
	taken  Config // by the last Reload; of what it can change
	deps   Deps
	log    *slog.Logger
	fabric *fabric
	began  time.Time

	control   *control.Controller
	inbox     *control.Inbox
	door      *control.Door
	keeper    *control.Keeper
	account   *control.Account
	hub       *api.EventHub
	server    *api.Server
	listener  net.Listener
	collector *collector.Collector
	recorder  *capture.Recorder // nil: nothing is recorded
	ints      *udp.Conn
	mirrors   *erspan.Listener
	feed      *feed // nil: nothing comes but DTA reports
	decoders  *decoders

	drained  chan struct{} // every report that was taken is in memory
	finished chan struct{} // and the controller has seen it
	told     map[uint64]anomaly.Cause

	counts atomic.Pointer[counts]
	stored atomic.Pointer[stored]
	ours   atomic.Pointer[intCounts]
	last   atomic.Pointer[collector.Status] // before its memory was closed
	ended  atomic.Pointer[api.Health]       // when Run had done all
	stop   context.CancelFunc
	served chan struct{} // the API answers no more
}

// counts is a snapshot of what only the controller's goroutine may look at.
type counts struct {
	stats control.Stats
	lost  uint64
}

// intCounts is a snapshot of what the socket of INT reports counts.
type intCounts struct {
	socket udp.Stats
	reader intreport.Stats
}

// stored is what the last upkeep found.
type stored struct {
	size      model.Bytes
	max       model.Bytes
	memory    model.Bytes // of the engine
	forgotten uint64
}

// keepEvery is how often records are written.
const keepEvery = 250 * time.Millisecond

// New opens sockets and memory, and starts nothing. Run or Close must follow.
func New(ctx context.Context, cfg Config, deps Deps) (_ *Service, err error) {
	began := time.Now()
	s := &Service{
		cfg: cfg.clone(), taken: cfg.clone(), deps: deps, log: deps.Log, began: began, account: control.NewAccount(began), door: control.NewDoor(),
		hub: api.NewEventHub(256, 1024), drained: make(chan struct{}), served: make(chan struct{}), finished: make(chan struct{}), told: map[uint64]anomaly.Cause{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.fabric, err = readFabric(&cfg); err != nil {
		return nil, err
	}
	last, err := lastNumbers(ctx, deps.Store)
	if err != nil {
		return nil, err
	}
	s.keeper = control.NewBatchWriter(deps.Store, keepEvery, cfg.Store.Queue, deps.Log)
	if s.control, err = s.fabric.controller(&cfg, last, control.Output{Records: s.keep, Incident: s.hear}); err != nil {
		return nil, err
	}
	s.View = s.control.View()
	s.counts.Store(&counts{})
	s.ours.Store(&intCounts{})
	s.stored.Store(&stored{max: cfg.Store.MaxSize})
	if err := s.listen(ctx); err != nil {
		return nil, err
	}
	return s, s.serve()
}

// listen opens everything that reports come in by.
func (s *Service) listen(ctx context.Context) (err error) {
	c := collector.DefaultConfig()
	c.Listen, c.Workers, c.Rate, c.Receive = s.cfg.DTA.Listen, s.cfg.DTA.Workers, s.cfg.DTA.Rate, int(s.cfg.DTA.Receive)
	c.Status = netip.AddrPort{} // the API has it all
	c.Memory.Dir, c.Memory.Lists = s.cfg.DTA.Memory, []list.Config{s.fabric.memory()}
	c.Translate.ListWait = s.cfg.Controller.Step
	c.Drained = s.drain
	if err := s.openRecorder(); err != nil {
		return err
	}
	if s.recorder != nil {
		c.Tap = func(at model.Time, from netip.AddrPort, datagram []byte, stored bool) {
			s.record(capture.DTA, stored, at, from, s.Reports(), datagram)
		}
	}
	if s.collector, err = collector.New(ctx, c, s.log); err != nil {
		return err
	}
	if s.inbox, err = control.NewInbox(s.collector.Memory()); err != nil {
		return err
	}
	if s.cfg.INT.Listen.IsValid() || s.cfg.ERSPAN.Listen.IsValid() {
		if s.feed, err = newFeed(s.deps.Stream, s.fabric.lists); err != nil {
			return err
		}
	}
	if s.decoders, err = s.fabric.decoders(&s.cfg, false, func(at model.Time, id dta.ListID, data []byte) { s.feed.put(at, id, data) }); err != nil {
		return err
	}
	if s.cfg.INT.Listen.IsValid() {
		if s.ints, err = udp.Listen(udp.DefaultConfig(s.cfg.INT.Listen)); err != nil {
			return fmt.Errorf("int.listen: %w", err)
		}
	}
	if s.cfg.ERSPAN.Listen.IsValid() {
		if s.mirrors, err = erspan.Listen(s.cfg.ERSPAN.Listen, s.decoders.erspan); err != nil {
			return fmt.Errorf("erspan.listen: %w; weft trace --pcap reads a capture of them", err)
		}
		s.mirrors.Tap = func(at model.Time, from netip.Addr, packet []byte, mirrored bool) {
			s.record(capture.ERSPAN, mirrored, at, netip.AddrPortFrom(from, 0), netip.AddrPortFrom(s.cfg.ERSPAN.Listen, 0), packet)
		}
	}
	return nil
}

// drain is called by the collector when it has taken all that it will take. Its
// memory is closed afterwards, so whoever reads it must have ended.
func (s *Service) drain() {
	s.stop()
	close(s.drained)
	<-s.finished
	<-s.served
	st := s.collector.Status()
	s.last.Store(&st)
}

// serve makes the API and opens its socket.
func (s *Service) serve() error {
	cfg, err := s.cfg.api()
	if err != nil {
		return err
	}
	front := control.NewBackend(s.control, s.door.Call, s.hub)
	if s.server, err = api.New(cfg, api.Deps{
		Live: s, Records: s.keeper.Ahead(s.deps.Store), Hub: s.hub, Prober: front, Marker: front, CounterAdmin: front, Diagnoser: front,
		Console: s.deps.Page, Build: s.deps.Build, Log: s.log,
	}); err != nil {
		return err
	}
	if s.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
		return fmt.Errorf("api.listen: %w", err)
	}
	return nil
}

// Addr is where the API listens; Reports where DTA reports are taken, INT where
// INT reports are, if they are.
func (s *Service) Addr() net.Addr { return s.listener.Addr() }

func (s *Service) Reports() netip.AddrPort { return s.collector.Addr() }

// INT is where INT reports are taken; not valid: nowhere.
func (s *Service) INT() (a netip.AddrPort) {
	if s.ints != nil {
		a = s.ints.Local()
	}
	return a
}

// Run works until ctx ends. Then sockets are read out, what was taken is
// analysed and written, and everything but the store is closed.
func (s *Service) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.stop = stop
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs error
	// Those that take reports end with ctx; the others when there is nothing
	// left for them.
	start := func(ctx context.Context, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil {
				mu.Lock()
				errs = errors.Join(errs, err)
				mu.Unlock()
				stop()
			}
		})
	}
	keeping, halt := context.WithCancel(context.WithoutCancel(ctx))
	kept := make(chan error, 1)
	go func() { kept <- s.keeper.Run(keeping) }()
	recorded := make(chan error, 1)
	if s.recorder != nil {
		go func() { recorded <- s.recorder.Run(keeping) }()
	} else {
		recorded <- nil
	}
	var sockets sync.WaitGroup
	socket := func(f func(context.Context) error) {
		sockets.Add(1)
		start(ctx, func(ctx context.Context) error { defer sockets.Done(); return f(ctx) })
	}
	if s.ints != nil {
		socket(s.takeINT)
	}
	if s.mirrors != nil {
		socket(s.takeMirrors)
	}
	start(context.WithoutCancel(ctx), func(ctx context.Context) error { return s.watch(ctx, &sockets) })
	start(ctx, s.collector.Run)
	start(ctx, func(ctx context.Context) error { defer close(s.served); return s.server.Serve(ctx, s.listener) })
	start(ctx, s.maintain)
	wg.Wait()
	halt()
	errs = errors.Join(errs, <-kept, <-recorded)
	h := s.Health()
	s.ended.Store(&h)
	s.log.Info("everything that was taken is kept", accounts(&h)...)
	s.collector, s.mirrors, s.listener, s.recorder = nil, nil, nil, nil // closed by their Run
	return errors.Join(errs, s.Close())
}

// Close frees what New opened, without Run.
func (s *Service) Close() error {
	var errs []error
	if s.collector != nil {
		errs = append(errs, s.collector.Close())
	}
	if s.ints != nil {
		errs = append(errs, s.ints.Close())
		s.ints = nil
	}
	if s.mirrors != nil {
		errs = append(errs, s.mirrors.Close())
	}
	if s.recorder != nil {
		errs = append(errs, s.recorder.Close())
	}
	if s.listener != nil {
		errs = append(errs, s.listener.Close())
	}
	if s.feed != nil {
		errs = append(errs, s.feed.close())
	}
	return errors.Join(errs...)
}
