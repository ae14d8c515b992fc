// Package collector is the service behind `weft collect` and `weft translate`:
// sockets that take reports, translators that write them into memory here or
// over RDMA, memory that others write over RDMA, and an account of all that
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
	"time"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/rocev2"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Config says what a collector serves, and where. It has memory, or writes
// that of others: Collectors. Its memory is written by reports that it takes
// itself, or over RDMA: RoCE.
type Config struct {
	Listen     netip.AddrPort   // reports; a port of 0 takes a free one
	RoCE       netip.AddrPort   // RoCEv2 requests, in place of reports
	Control    netip.AddrPort   // where connections for RoCE are set up
	Collectors []string         // where to set up connections to other collectors, host:port; keys are spread over them
	Name       string           // of this translator, at other collectors
	Source     netip.AddrPort   // of requests to other collectors; without a port, free ones are taken
	Status     netip.AddrPort   // HTTP: /status, /metrics, /notices, /healthz; the zero value serves none
	Workers    int              // sockets that share the port, each with a goroutine
	ReceiveBuffer    int              // bytes the kernel may queue for each socket
	Offload    bool             // let the kernel hand over runs of datagrams as one message
	AnswerPort uint16           // where reporters of version 1 take answers; 0 is the port they report from
	Rate       float64          // reports per second that are let through; 0 for all
	Burst      int              // reports beyond the rate at once
	Reporters  int              // reporters whose numbers are followed
	Translate  translate.Config // how reports are gathered
	Memory     MemoryConfig

	// Tap, if any, sees every datagram, and whether any of its reports was
	// stored. Workers call it at once; it must not keep the datagram.
	Tap func(at model.Time, from netip.AddrPort, datagram []byte, stored bool)
	// Recorded, if any, is the account of what records the datagrams that Tap sees.
	Recorded func() capture.Stats
	// Drained, if any, is called by Run when every report it took is in memory,
	// for readers to look a last time: the memory is closed when it returns.
	Drained func()
}

// DefaultConfig listens on loopback.
func DefaultConfig() Config {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return Config{
		Listen:    netip.AddrPortFrom(loopback, dta.Port),
		Control:   netip.AddrPortFrom(loopback, rocev2.ControlPort),
		Name:      "translator",
		Source:    netip.AddrPortFrom(loopback, 0),
		Status:    netip.AddrPortFrom(loopback, StatusPort),
		Workers:   1,
		ReceiveBuffer:   udp.DefaultConfig(netip.AddrPort{}).ReceiveBuffer,
		Offload:   true,
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
	memory  *translate.Memory // nil when it is elsewhere
	workers []*worker
	shards  []shard
	clients []*rocev2.Client // the shards, when memory is elsewhere
	server  *rocev2.Server
	notices noticeFeed
	http    net.Listener
	started time.Time
}

// shard is a Translator that all workers feed.
type shard interface {
	translate.Target
	Tick(now model.Time)
	Drain(now model.Time)
}

// MaxWorkers is one less than the writers of a memory: the last is RDMA.
const MaxWorkers = region.Writers - 1

// Validate complains about the first thing that is wrong.
func (c Config) Validate() error {
	if c.Workers < 1 || c.Workers > MaxWorkers {
		return fmt.Errorf("collector: %d workers, want 1 to %d", c.Workers, MaxWorkers)
	}
	if c.Reporters < 1 {
		return fmt.Errorf("collector: %d reporters, want at least 1", c.Reporters)
	}
	if c.RoCE.IsValid() && len(c.Collectors) > 0 {
		return errors.New("collector: memory for RDMA and collectors elsewhere, want one or the other")
	}
	if _, err := c.limiter(); err != nil || len(c.Collectors) > 0 { // whose memory is known when they are reached
		return err
	}
	plan, err := c.Memory.Plan()
	if err != nil {
		return err
	}
	for _, q := range c.Translate.Queries {
		if err := q.Check(plan); err != nil {
			return err
		}
	}
	return nil
}

// limiter is each worker's share of the rate.
func (c Config) limiter() (translate.Limiter, error) {
	return translate.NewLimiter(c.Rate/float64(c.Workers), c.Burst)
}

// New opens memory, sockets and connections, and starts nothing. Close or Run
// must follow.
func New(ctx context.Context, cfg Config, log *slog.Logger) (_ *Collector, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Collector{cfg: cfg, log: log, started: time.Now()}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if len(cfg.Collectors) == 0 {
		if c.memory, err = cfg.Memory.open(); err != nil {
			return nil, err
		}
	}
	if cfg.RoCE.IsValid() {
		c.server, err = rocev2.NewServer(rocev2.ServerConfig{RoCE: cfg.RoCE, Control: cfg.Control}, c.memory, c.notices.publishRDMA, log)
	} else {
		err = c.openWorkers(ctx)
	}
	if err == nil && cfg.Status.IsValid() {
		c.http, err = net.Listen("tcp", cfg.Status.String())
	}
	return c, err
}

// openWorkers opens what takes reports.
func (c *Collector) openWorkers(ctx context.Context) error {
	limit, err := c.cfg.limiter()
	if err != nil {
		return err
	}
	if len(c.cfg.Collectors) > 0 {
		err = c.openClients(ctx)
	} else {
		err = c.openLocal()
	}
	if err != nil {
		return err
	}
	var targets []translate.Target
	var hold sync.Locker
	for _, s := range c.shards {
		targets = append(targets, s)
	}
	if l, ok := c.shards[0].(*lockedTranslator); ok && c.cfg.Workers == 1 {
		// One lock for all that a call receives, in place of one for each
		// datagram: taking it waits for all stores before it, those to memory
		// among them, and cost a seventh of the time (weft bench dta).
		targets, hold = []translate.Target{l.tr}, &l.mu
	}
	socket := udp.DefaultConfig(c.cfg.Listen)
	socket.ReceiveBuffer, socket.Offload = c.cfg.ReceiveBuffer, c.cfg.Offload
	conns, err := udp.ListenAll(socket, c.cfg.Workers)
	if err != nil {
		return err
	}
	for i, conn := range conns {
		w := &worker{conn: conn, intake: translate.NewIntake(c.cfg.Reporters), router: translate.NewRouter(limit, targets...), answerPort: c.cfg.AnswerPort, routerLock: hold, tap: c.cfg.Tap}
		if i < len(c.shards) {
			w.ticked = c.shards[i]
		}
		c.workers = append(c.workers, w)
	}
	return nil
}

// openLocal makes as many translators as there are workers: reports meet by
// key, whoever received them.
func (c *Collector) openLocal() error {
	for i := range c.cfg.Workers {
		out, err := translate.NewLocalWriter(c.memory, i, c.cfg.Workers > 1, c.notices.publish)
		if err != nil {
			return err
		}
		t, err := translate.New(c.cfg.Translate, out.Plan, out)
		if err != nil {
			return err
		}
		c.shards = append(c.shards, &lockedTranslator{tr: t})
	}
	return nil
}

// openClients makes a translator for each collector elsewhere. They keep their
// own time.
func (c *Collector) openClients(ctx context.Context) error {
	for i, to := range c.cfg.Collectors {
		source := c.cfg.Source
		if i > 0 && source.Port() != 0 {
			source = netip.AddrPortFrom(source.Addr(), source.Port()+uint16(i))
		}
		client, err := rocev2.Dial(ctx, rocev2.ClientConfig{
			Name: c.cfg.Name, Collector: to, Local: source,
			Translate: c.cfg.Translate, Requester: rdma.DefaultRequesterConfig(),
		}, c.log)
		if err != nil {
			return err
		}
		c.clients = append(c.clients, client)
		c.shards = append(c.shards, client)
	}
	return nil
}

// Addr is where reports are taken.
func (c *Collector) Addr() netip.AddrPort {
	if c.server != nil {
		return c.server.Addr()
	}
	return c.workers[0].conn.Local()
}

// Control is where connections for RDMA are set up, or nil.
func (c *Collector) Control() net.Addr {
	if c.server == nil {
		return nil
	}
	return c.server.Control()
}

// StatusAddr is where the collector tells about itself, or nil.
func (c *Collector) StatusAddr() net.Addr {
	if c.http == nil {
		return nil
	}
	return c.http.Addr()
}

// Memory is what reports are written into, or nil when it is elsewhere.
// Readers may use it until Run returns.
func (c *Collector) Memory() *translate.Memory { return c.memory }

// SubscribeNotices calls back for every immediate report until the returned function is
// called. The callback must not wait.
func (c *Collector) SubscribeNotices(f func(translate.ImmediateNotice)) (stop func()) { return c.notices.subscribe(f) }

// Run takes reports until ctx ends, then writes what was still being gathered,
// saves files to their disk and closes everything.
func (c *Collector) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, len(c.workers)+len(c.clients)+2)
	work := func(ctx context.Context, wg *sync.WaitGroup, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil {
				errs <- err
				cancel()
			}
		})
	}
	for _, w := range c.workers {
		work(ctx, &wg, w.run)
	}
	if c.server != nil {
		work(ctx, &wg, c.server.Run)
	}
	// Connections outlive the workers: they carry what those leave.
	var links sync.WaitGroup
	linked, unlink := context.WithCancel(context.WithoutCancel(ctx))
	defer unlink()
	for _, l := range c.clients {
		work(linked, &links, l.Run)
	}
	var asked requestGate
	server := &http.Server{
		Handler: asked.wrap(c.handler()), ReadHeaderTimeout: 5 * time.Second,
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
	// Handlers read memory that is unmapped below, so they must have ended. One
	// whose client does not read its answer is cut off.
	ending, ended := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer ended()
	if server.Shutdown(ending) != nil {
		_ = server.Close()
	}
	asked.close()
	wg.Wait()
	now := model.TimeOf(time.Now())
	for _, s := range c.shards {
		s.Drain(now)
	}
	if c.cfg.Drained != nil {
		c.cfg.Drained()
	}
	unlink()
	links.Wait()
	c.clients, c.server = nil, nil // closed by their Run
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
	for _, l := range c.clients {
		errs = append(errs, l.Close())
	}
	if c.server != nil {
		errs = append(errs, c.server.Close())
	}
	if c.http != nil {
		_ = c.http.Close()
	}
	if c.memory != nil {
		errs = append(errs, closeAll(c.memory))
	}
	return errors.Join(errs...)
}
