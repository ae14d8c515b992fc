// Package collector is the service behind `weft collect`: sockets that take
// reports, translators that write them into memory, and an account of all that
// was lost on the way. The algorithms are collect's; this package owns the
// sockets, clocks and locks they do without.
package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Config says what a collector serves, and where.
type Config struct {
	Listen     netip.AddrPort   // reports; a port of 0 takes a free one
	Status     netip.AddrPort   // HTTP: /status, /metrics, /notices, /healthz; the zero value serves none
	Workers    int              // sockets that share the port, each with a goroutine
	Receive    int              // bytes the kernel may queue for each socket
	AnswerPort uint16           // where reporters of version 1 take answers; 0 is the port they report from
	Rate       float64          // reports per second that are let through; 0 for all
	Burst      int              // reports beyond the rate at once
	Reporters  int              // reporters whose numbers are followed
	Translate  translate.Config // how reports are gathered
	Memory     Memory
}

// DefaultConfig listens on loopback.
func DefaultConfig() Config {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return Config{
		Listen:    netip.AddrPortFrom(loopback, dta.Port),
		Status:    netip.AddrPortFrom(loopback, StatusPort),
		Workers:   1,
		Receive:   udp.DefaultConfig(netip.AddrPort{}).Buffer,
		Burst:     1 << 16,
		Reporters: translate.DefaultReporters,
		Translate: translate.DefaultConfig(),
		Memory:    DefaultMemory(),
	}
}

// StatusPort is where a collector tells about itself by default.
const StatusPort = 40046

// Collector takes reports into memory.
type Collector struct {
	cfg     Config
	log     *slog.Logger
	memory  *translate.Memory
	workers []*worker
	shards  []*shard
	notices notices
	http    net.Listener
	started time.Time
}

// New opens memory and sockets, and starts nothing. Close or Run must follow.
func New(cfg Config, log *slog.Logger) (_ *Collector, err error) {
	if cfg.Workers < 1 || cfg.Workers > region.Writers {
		return nil, fmt.Errorf("collector: %d workers, want 1 to %d", cfg.Workers, region.Writers)
	}
	if cfg.Reporters < 1 {
		return nil, fmt.Errorf("collector: %d reporters, want at least 1", cfg.Reporters)
	}
	limit, err := translate.NewLimiter(cfg.Rate/float64(cfg.Workers), cfg.Burst)
	if err != nil {
		return nil, err
	}
	c := &Collector{cfg: cfg, log: log, started: time.Now()}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if c.memory, err = cfg.Memory.open(); err != nil {
		return nil, err
	}
	// As many translators as workers: reports meet by key, whoever received
	// them.
	var targets []translate.Target
	for i := range cfg.Workers {
		out, err := translate.NewLocal(c.memory, i, cfg.Workers > 1, c.notices.publish)
		if err != nil {
			return nil, err
		}
		t, err := translate.New(cfg.Translate, out.Plan, out)
		if err != nil {
			return nil, err
		}
		s := &shard{tr: t}
		c.shards = append(c.shards, s)
		targets = append(targets, s)
	}
	at := cfg.Listen
	for i := range cfg.Workers {
		socket := udp.DefaultConfig(at)
		socket.Buffer = cfg.Receive
		conn, err := udp.Listen(socket)
		if err != nil {
			return nil, err
		}
		at = conn.Local()
		c.workers = append(c.workers, &worker{
			conn: conn, intake: translate.NewIntake(cfg.Reporters), router: translate.NewRouter(limit, targets...),
			own: c.shards[i], answerPort: cfg.AnswerPort, log: log,
		})
	}
	if cfg.Status.IsValid() {
		c.http, err = net.Listen("tcp", cfg.Status.String())
	}
	return c, err
}

// Addr is where reports are taken.
func (c *Collector) Addr() netip.AddrPort { return c.workers[0].conn.Local() }

// StatusAddr is where the collector tells about itself, or nil.
func (c *Collector) StatusAddr() net.Addr {
	if c.http == nil {
		return nil
	}
	return c.http.Addr()
}

// Memory is what reports are written into. Readers may use it until Run
// returns.
func (c *Collector) Memory() *translate.Memory { return c.memory }

// Notices calls back for every immediate report until the returned function is
// called. The callback must not wait.
func (c *Collector) Notices(f func(translate.Notice)) (stop func()) { return c.notices.subscribe(f) }

// Run takes reports until ctx ends, then writes what was still being gathered,
// saves files to their disk and closes everything.
func (c *Collector) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, len(c.workers)+1)
	for _, w := range c.workers {
		wg.Go(func() {
			if err := w.run(ctx); err != nil {
				errs <- err
				cancel()
			}
		})
	}
	server := &http.Server{
		Handler: c.handler(), ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }, // ends streams
	}
	if c.http != nil {
		wg.Go(func() {
			if err := server.Serve(c.http); !errors.Is(err, http.ErrServerClosed) {
				errs <- fmt.Errorf("collector: status: %w", err)
				cancel()
			}
		})
	}
	<-ctx.Done()
	// Handlers read memory that is unmapped below.
	_ = server.Shutdown(context.WithoutCancel(ctx))
	wg.Wait()
	now := model.TimeOf(time.Now())
	for _, s := range c.shards {
		s.tr.Drain(now)
	}
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return errors.Join(all, c.Close())
}

// Close frees what New opened, without Run.
func (c *Collector) Close() error {
	var errs []error
	for _, w := range c.workers {
		errs = append(errs, w.conn.Close())
	}
	if c.http != nil {
		_ = c.http.Close()
	}
	if c.memory != nil {
		errs = append(errs, closeAll(c.memory))
	}
	return errors.Join(errs...)
}

// shard guards a Translator that all workers feed.
type shard struct {
	mu sync.Mutex
	tr *translate.Translator
}

func (s *shard) Serves(r *dta.Report) bool { return s.tr.Serves(r) }

func (s *shard) Put(now model.Time, batch []dta.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tr.Put(now, batch)
}

// worker receives on one socket.
type worker struct {
	conn       *udp.Conn
	intake     *translate.Intake
	router     *translate.Router
	own        *shard // whose time this worker keeps
	answerPort uint16
	log        *slog.Logger

	mu    sync.Mutex // of what follows, for Status
	stats WorkerStats
}

// WorkerStats account for one socket.
type WorkerStats struct {
	Socket      udp.Stats             `json:"socket"`
	Intake      translate.IntakeStats `json:"intake"`
	LostAnswers uint64                `json:"lost_answers"` // that could not be sent
}

// tick is how often time is looked at, of the waits of milliseconds that a
// translator keeps.
const tick = 2 * time.Millisecond

func (w *worker) run(ctx context.Context) error {
	var now, ticked model.Time
	answer := make([]byte, 0, 4096)
	lost := uint64(0)
	handle := func(from netip.AddrPort, datagram []byte) {
		if now == 0 {
			now = model.TimeOf(time.Now())
		}
		answer = w.intake.Take(now, from, datagram, w.router, answer[:0])
		if len(answer) == 0 {
			return
		}
		if _, err := w.conn.Send(w.answerTo(from, answer), answer); err != nil {
			lost++
		}
	}
	for ctx.Err() == nil {
		now = 0
		if _, err := w.conn.Receive(handle); err != nil {
			return err
		}
		if now == 0 {
			now = model.TimeOf(time.Now())
		}
		w.router.Flush(now)
		if now.Sub(ticked) >= tick {
			ticked = now
			w.own.mu.Lock()
			w.own.tr.Tick(now)
			w.own.mu.Unlock()
		}
		w.mu.Lock()
		w.stats = WorkerStats{w.conn.Stats(), w.intake.Stats(), lost}
		w.mu.Unlock()
	}
	return nil
}

// answerTo says where an answer goes: back to the port that reported, unless
// another is set. The prototype's reporters have a port of their own for it.
func (w *worker) answerTo(from netip.AddrPort, answer []byte) netip.AddrPort {
	switch {
	case len(answer) == dta.PrototypeAckSize:
		return netip.AddrPortFrom(from.Addr(), dta.AckPort)
	case w.answerPort != 0:
		return netip.AddrPortFrom(from.Addr(), w.answerPort)
	}
	return from
}

// notices hands immediate reports to whoever listens.
type notices struct {
	mu    sync.Mutex
	next  int
	all   map[int]func(translate.Notice)
	any   atomic.Bool // without listeners there is no lock to take
	total atomic.Uint64
}

func (n *notices) publish(x translate.Notice) {
	n.total.Add(1)
	if !n.any.Load() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.all {
		f(x)
	}
}

func (n *notices) subscribe(f func(translate.Notice)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[int]func(translate.Notice){}
	}
	id := n.next
	n.next++
	n.all[id] = f
	n.any.Store(true)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.all, id)
		n.any.Store(len(n.all) > 0)
	}
}
