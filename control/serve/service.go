package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/collector"
	"github.com/weft-telemetry/weft/ingest/erspan"
	"github.com/weft-telemetry/weft/ingest/intreport"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
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
	hub       *api.Hub
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
	told     map[uint64]incident.Cause

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
	forgotten uint64
}

// keepEvery is how often records are written.
const keepEvery = 250 * time.Millisecond

// New opens sockets and memory, and starts nothing. Run or Close must follow.
func New(ctx context.Context, cfg Config, deps Deps) (_ *Service, err error) {
	began := time.Now()
	s := &Service{
		cfg: cfg.clone(), taken: cfg.clone(), deps: deps, log: deps.Log, began: began, account: control.NewAccount(began), door: control.NewDoor(),
		hub: api.NewHub(256, 1024), drained: make(chan struct{}), served: make(chan struct{}), finished: make(chan struct{}), told: map[uint64]incident.Cause{},
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
	s.keeper = control.NewKeeper(deps.Store, keepEvery, cfg.Store.Queue, deps.Log)
	if s.control, err = s.fabric.controller(&cfg, last, control.Output{Keep: s.keep, Incident: s.hear}); err != nil {
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
	front := control.NewFront(s.control, s.door.Do, s.hub)
	if s.server, err = api.New(cfg, api.Deps{
		Live: s, Records: s.keeper.Ahead(s.deps.Store), Hub: s.hub, Prober: front, Marker: front, Meter: front, Doctor: front,
		Page: s.deps.Page, Build: s.deps.Build, Log: s.log,
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
func (s *Service) Addr() net.Addr          { return s.listener.Addr() }
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

// watch is the controller's goroutine. It ends when the collector has drained.
func (s *Service) watch(ctx context.Context, sockets *sync.WaitGroup) error {
	defer close(s.finished)
	defer s.door.Close()
	now := model.TimeOf(time.Now())
	for {
		select {
		case <-s.drained:
			sockets.Wait()
			now := model.TimeOf(time.Now())
			err := s.look(now)
			s.control.Flush()
			s.control.Tick(now)
			s.count()
			return err
		default:
		}
		s.door.Serve()
		wall := model.TimeOf(time.Now())
		now = max(min(wall, now.Add(stride)), wall.Add(-behind))
		s.control.Wall(wall)
		if err := s.look(now); err != nil {
			return err
		}
		s.control.Tick(now)
		s.count()
		s.door.Rest(ctx, s.cfg.Controller.Step)
	}
}

// stride is how far the controller's clock goes at once. A process that was held
// up has reports in its sockets that came in time: it catches up little by
// little, so that they are read before it is too late for them.
const stride = 10 * time.Millisecond

// behind is how far the controller's clock may stay behind: where there is always
// more to do than can be done, it would never catch up.
const behind = 2 * time.Second

// look hands the controller everything that has come.
func (s *Service) look(now model.Time) error {
	n := 0
	_, err := s.inbox.Poll(func(id dta.ListID, data []byte) {
		s.control.Take(now, id, data)
		if n++; n%yieldEvery == 0 {
			runtime.Gosched()
			s.control.Wall(model.TimeOf(time.Now())) // more has come meanwhile
		}
	})
	if s.feed != nil {
		s.feed.take(func(at model.Time, id dta.ListID, data []byte) { s.control.Take(min(at, now), id, data) })
	}
	return err
}

// yieldEvery is after how many reports the controller lets others have its core:
// Go would leave it to it for 10 ms at a time, and an answer of the API waits for
// a core several times.
const yieldEvery = 32

func (s *Service) count() { s.counts.Store(&counts{s.control.Stats(), s.inbox.Lost()}) }

// takeINT reads the socket of INT reports, and what the kernel has queued at the
// end.
func (s *Service) takeINT(ctx context.Context) error {
	var ended, got time.Time
	for {
		if ctx.Err() != nil && ended.IsZero() {
			ended = time.Now()
			got = ended
		}
		n, err := s.ints.Receive(func(from netip.AddrPort, datagram []byte) {
			at, before := model.TimeOf(time.Now()), s.decoders.ints.Stats().Used
			s.decoders.ints.Datagram(at, datagram)
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
		if !ended.IsZero() && (now.Sub(got) >= quiet || now.Sub(ended) >= readOut) {
			return nil
		}
	}
}

// At the end a socket is read until nothing has come for a while, and no longer
// than readOut. One look does not tell that the queue is empty: a signal may have
// interrupted it.
const (
	quiet   = 10 * time.Millisecond
	readOut = time.Second
)

// takeMirrors reads the socket of ERSPAN mirrors.
func (s *Service) takeMirrors(ctx context.Context) error {
	var data []byte
	return s.mirrors.Run(ctx, func(at model.Time, m *mirror.Mirror) {
		data = m.AppendTo(data[:0])
		s.feed.put(at, s.fabric.lists.Mirrors.First, data)
	})
}

// upkeep is how often retention is enforced.
const upkeep = time.Minute

// maintain enforces retention, now and then every minute.
func (s *Service) maintain(ctx context.Context) error {
	t := time.NewTicker(upkeep)
	defer t.Stop()
	for {
		// It is let finish at the end: to interrupt it leaves work half done.
		up, err := s.deps.Store.Maintain(context.WithoutCancel(ctx), time.Now())
		switch {
		case err != nil:
			s.log.Error("upkeep of the store", "error", err)
		default:
			now := *s.stored.Load()
			now.size = up.After
			for _, r := range up.Removed {
				now.forgotten += r.Age + r.Size
			}
			s.stored.Store(&now)
			s.log.Debug("upkeep of the store", "before", up.Before, "after", up.After, "removed", now.forgotten)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// keep hands records on, and tells clients of incidents.
func (s *Service) keep(b *record.Batch) {
	s.keeper.Keep(b)
	for i := range b.Incidents {
		s.hub.Publish(api.NewIncident(&b.Incidents[i]))
	}
}

// hear writes incidents to the log: when they are found, when their cause
// changes, when they are over.
func (s *Service) hear(in *incident.Incident) {
	if in.Severity() == incident.Notice || in.Into != 0 {
		return
	}
	was, known := s.told[in.ID]
	switch {
	case in.Closed && known:
		delete(s.told, in.ID)
		s.log.Info("incident is over", "id", in.ID, "cause", in.Cause)
	case !in.Closed && (!known || was != in.Cause):
		s.told[in.ID] = in.Cause
		s.log.Warn("incident", "id", in.ID, "severity", in.Severity(), "cause", in.Cause, "what", in.Text)
	}
}

// lastNumbers asks a store for the numbers that were given before.
func lastNumbers(ctx context.Context, r api.Records) (n numbers, err error) {
	incidents, err := r.Incidents(ctx, record.Query{})
	if err != nil {
		return n, fmt.Errorf("read the store: %w", err)
	}
	for i := range incidents.Items {
		n.incident = max(n.incident, number(incidents.Items[i].ID, "i"))
	}
	diagnoses, err := r.Diagnoses(ctx, record.Query{})
	if err != nil {
		return n, fmt.Errorf("read the store: %w", err)
	}
	for i := range diagnoses.Items {
		n.diagnosis = max(n.diagnosis, number(diagnoses.Items[i].ID, "d"))
	}
	return n, nil
}

func number(id, prefix string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(id, prefix), 10, 64) // another's is none of ours
	return n
}
