// Package collector is the service of `weft collect` and `weft translate`:
// sockets that receive reports, translators that write them into local memory or
// by RDMA, memory that others write by RDMA, and counters of every loss. The
// algorithms are in collect; this package owns their sockets, clocks and locks.
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
	"github.com/weft-telemetry/weft/ingest/rocev2"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
)

// Collector receives reports into memory.
type Collector struct {
	cfg     Config
	log     *slog.Logger
	memory  *translate.Memory // nil if it is remote
	workers []*worker
	shards  []shard
	clients []*rocev2.Client // to remote memory; a shard is one or several replicas
	server  *rocev2.Server
	notices noticeFeed
	http    net.Listener
	started time.Time
}

// shard is a Translator that all workers put reports into.
type shard interface {
	translate.Target
	Tick(now model.Time)
	Drain(now model.Time)
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
		c.server, err = rocev2.NewServer(cfg.rdma(), c.memory, c.notices.publishRDMA, log)
	} else {
		err = c.openWorkers(ctx)
	}
	if err == nil && cfg.Status.IsValid() {
		c.http, err = net.Listen("tcp", cfg.Status.String())
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// openWorkers opens the sockets that receive reports.
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
		// One lock for all datagrams of a receive call, instead of one for each:
		// locking waits for all earlier stores, including those to memory, and
		// cost a seventh of the time (weft bench dta).
		targets, hold = []translate.Target{l.tr}, &l.mu
	}
	socket := udp.DefaultConfig(c.cfg.Listen)
	socket.ReceiveBuffer, socket.Offload = c.cfg.ReceiveBuffer, c.cfg.Offload
	conns, err := udp.ListenAll(socket, c.cfg.Workers)
	if err != nil {
		return err
	}
	// One table of reporters: the kernel gives a copy from another port to another
	// worker.
	reporters := translate.NewReporters(c.cfg.Reporters)
	for i, conn := range conns {
		w := &worker{
			conn: conn, intake: translate.NewSharedIntake(reporters, c.cfg.Gate), router: translate.NewRouter(limit, targets...),
			answerPort: c.cfg.AnswerPort, routerLock: hold, tap: c.cfg.Tap, clock: c.cfg.Now, onPanic: c.cfg.Panic,
		}
		if i < len(c.shards) {
			w.ticked = c.shards[i]
		}
		c.workers = append(c.workers, w)
	}
	return nil
}

// openLocal makes as many translators as there are workers: all reports of a key
// go to one, from any worker.
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

// openClients makes a translator for each remote collector. They have separate
// timers.
func (c *Collector) openClients(ctx context.Context) error {
	for i, to := range c.cfg.Collectors {
		source := c.cfg.Source
		if i > 0 && source.Port() != 0 {
			source = netip.AddrPortFrom(source.Addr(), source.Port()+uint16(i))
		}
		cfg := rocev2.ClientConfig{
			Name: c.cfg.Name, Collector: to, Local: source, Keys: c.cfg.Keys,
			Translate: c.cfg.Translate, Requester: rdma.DefaultRequesterConfig(),
			Patience: c.cfg.Patience,
		}
		if c.cfg.CM {
			plan, err := c.cfg.Memory.Plan()
			if err != nil {
				return err
			}
			cfg.CM = &rocev2.CMClientConfig{Plan: plan, Regions: c.cfg.Regions}
		}
		client, err := rocev2.Dial(ctx, cfg, c.log)
		if err != nil {
			return err
		}
		c.clients = append(c.clients, client)
		if c.cfg.Replicas <= 1 {
			c.shards = append(c.shards, client)
			continue
		}
		if i%c.cfg.Replicas == 0 {
			c.shards = append(c.shards, translate.Replicas{})
		} else if first := i - i%c.cfg.Replicas; !client.SameMemory(c.clients[first]) {
			return fmt.Errorf("collector: %s and %s are replicas with different memories, want the same kinds and sizes", c.cfg.Collectors[first], to)
		}
		last := &c.shards[len(c.shards)-1]
		*last = append((*last).(translate.Replicas), client)
	}
	return nil
}

// Addr is the address that receives reports.
func (c *Collector) Addr() netip.AddrPort {
	if c.server != nil {
		return c.server.Addr()
	}
	return c.workers[0].conn.Local()
}

// Control is the address of connection setup for RDMA, or nil.
func (c *Collector) Control() net.Addr {
	if c.server == nil {
		return nil
	}
	return c.server.Control()
}

// StatusAddr is the address of the collector's status, or nil.
func (c *Collector) StatusAddr() net.Addr {
	if c.http == nil {
		return nil
	}
	return c.http.Addr()
}

// Memory is the memory that reports are written into, or nil if it is remote.
// Readers may use it until Run returns.
func (c *Collector) Memory() *translate.Memory { return c.memory }

// SubscribeNotices calls f for every immediate report until the returned function
// is called. The callback must not block.
func (c *Collector) SubscribeNotices(f func(translate.ImmediateNotice)) (stop func()) {
	return c.notices.subscribe(f)
}

// Run receives reports until ctx ends, then writes what was still being gathered,
// syncs files to disk and closes everything.
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
	// Connections outlive the workers, to send their last reports.
	var links sync.WaitGroup
	linked, unlink := context.WithCancel(context.WithoutCancel(ctx))
	defer unlink()
	for _, l := range c.clients {
		work(linked, &links, l.Run)
	}
	var requests requestGate
	server := &http.Server{
		Handler: requests.wrap(c.handler()), ReadHeaderTimeout: 5 * time.Second,
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
	// Handlers read memory that is unmapped below, so they must have ended. A
	// client that does not read its answer is disconnected.
	ending, ended := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer ended()
	if server.Shutdown(ending) != nil {
		_ = server.Close()
	}
	requests.close()
	wg.Wait()
	now := model.TimeOf(time.Now())
	err := region.Guard(func() error {
		for _, s := range c.shards {
			s.Drain(now)
		}
		return nil
	})
	if c.cfg.Drained != nil {
		c.cfg.Drained()
	}
	unlink()
	links.Wait()
	c.clients, c.server = nil, nil // closed by their Run
	close(errs)
	all := err
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
