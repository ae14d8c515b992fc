package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
)

var serveSuite = Suite{
	Name:  "serve",
	About: "analysis of slots with 1K to 100K flows a switch, and latency of API queries while reports arrive at the sustained rate",
	Input: "flowsets of 20 switches whose flows each pass five of them, from reports to committed records; then weft serve in this process: reports of a simulated fat-tree (k=4, 320 flows, slots of 10 ms) over a UDP socket, a DuckDB file, and 200 queries a second, " +
		"nearly all different, over HTTP, timed from when each was due, a rejected one as a minute; report sender and query client share the cores with it",
	run: benchServe,
}

const (
	serveRate    = 200 // queries a second
	serveLimit   = 100 // milliseconds, limit of the 99th percentile
	serveAsk     = 15 * time.Second
	serveTry     = 2 * time.Second // at each rate
	serveHistory = 300_000         // flow records of the ten minutes before
)

// benchServe finds the highest rate without loss, and sends queries at that rate:
// once to a store with its cache, once to one that reads every result from the
// tables.
func benchServe(ctx context.Context) ([]Result, error) {
	results, err := compareSlots(ctx)
	if err != nil {
		return nil, err
	}
	idle, err := measureIdle(ctx)
	if err != nil {
		return nil, err
	}
	defer serve.RaiseGOMAXPROCS()() // as weft serve does
	r, err := recordFabric()
	if err != nil {
		return nil, err
	}
	copies, alone, err := findSustainedRate(ctx, r)
	if err != nil {
		return nil, err
	}
	ours, err := queryWhileServing(ctx, r, embedded.DefaultConfig().CacheSize, copies)
	if err != nil {
		return nil, err
	}
	tables, err := queryWhileServing(ctx, r, 0, copies)
	if err != nil {
		return nil, err
	}
	all, failed := latency(ours.answers, -1)
	beside, besideFailed := latency(tables.answers, -1)
	taken := higherIsBetter("reports analysed, with queries", ours.rate/1e3, "k/s", "without queries", alone/1e3, 0.5)
	taken.Note = "lost: " + ours.lost
	right := higherIsBetter("answered correctly", float64(len(all)-failed)/serveAsk.Seconds(), "/s", "queries sent",
		float64(len(all))/serveAsk.Seconds(), 1)
	right.Note = fmt.Sprintf("from the tables: %d of %d", len(beside)-besideFailed, len(beside))
	const peer = "from the tables"
	results = append(append(results, idle...),
		taken, right,
		lowerIsBetter("answers, p99", quantile(all, 0.99), "ms", "limit", serveLimit, 1),
		lowerIsBetter("answers, p50", quantile(all, 0.5), "ms", peer, quantile(beside, 0.5), 1),
		lowerIsBetter("answers, p99", quantile(all, 0.99), "ms", peer, quantile(beside, 0.99), 1),
		lowerIsBetter("answers, p99.9", quantile(all, 0.999), "ms", peer, quantile(beside, 0.999), 1),
	)
	for i := range serveRoutes {
		a, _ := latency(ours.answers, i)
		b, _ := latency(tables.answers, i)
		if len(a) == 0 || len(b) == 0 {
			continue
		}
		r := lowerIsBetter(serveRoutes[i].name+", p99", quantile(a, 0.99), "ms", "limit", serveLimit, 0.5)
		if serveRoutes[i].stored {
			r = lowerIsBetter(serveRoutes[i].name+", p99", quantile(a, 0.99), "ms", peer, quantile(b, 0.99), 1)
		}
		r.Note = fmt.Sprintf("p50 %.1f, p99.9 %.1f of %d", quantile(a, 0.5), quantile(a, 0.999), len(a))
		results = append(results, r)
	}
	return results, nil
}

// serveBed is a serving process with a fabric that reports to it.
type serveBed struct {
	*serve.Service
	store  *embedded.Store
	player *reportSender
	dir    string
	stop   context.CancelFunc
	ended  chan error // of the service, then of the report sender
	played chan error
}

func newServeBed(ctx context.Context, r *recording, hot model.Bytes, copies float64) (_ *serveBed, err error) {
	b := &serveBed{ended: make(chan error, 1), played: make(chan error, 1), stop: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.dir, err = os.MkdirTemp("", "weft-bench-serve"); err != nil {
		return nil, err
	}
	cfg := serve.DefaultConfig()
	cfg.Topology, cfg.Store.Path = filepath.Join(b.dir, "fabric.yaml"), filepath.Join(b.dir, "weft.duckdb")
	cfg.API.Listen, cfg.DTA().Listen = "127.0.0.1:0", netip.MustParseAddrPort("127.0.0.1:0")
	if err := os.WriteFile(cfg.Topology, []byte("generate: {kind: fat-tree, k: 4, rate: 1Gb/s}\n"), 0o666); err != nil {
		return nil, err
	}
	keep := embedded.DefaultConfig()
	keep.CacheSize = hot
	if b.store, err = embedded.Open(cfg.Store.Path, keep); err != nil {
		return nil, err
	}
	if err := history(ctx, b.store, r); err != nil {
		return nil, err
	}
	ctx, b.stop = context.WithCancel(ctx)
	if b.Service, err = serve.New(ctx, cfg,
		serve.Deps{Store: b.store, Log: slog.New(slog.DiscardHandler)}); err != nil {
		return nil, err
	}
	if b.player, err = newReportSender(r, b.Fabric(), b.Reports()); err != nil {
		return nil, errors.Join(err, b.Service.Close())
	}
	b.player.copies = copies
	go func() { b.ended <- b.Run(ctx) }()
	go func() { b.played <- b.player.run(ctx) }()
	return b, nil
}

// close stops everything that was started.
func (b *serveBed) close() (err error) {
	b.stop()
	if b.player != nil {
		err = errors.Join(err, <-b.played, b.player.conn.Close(), <-b.ended)
	}
	if b.store != nil {
		err = errors.Join(err, b.store.Close())
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// history fills a store with flows of the ten minutes before.
func history(ctx context.Context, s *embedded.Store, r *recording) error {
	const batches = 30
	now := time.Now()
	for n := range batches {
		var b record.Batch
		at := now.Add(-time.Duration(batches-n) * 20 * time.Second)
		for i := range serveHistory / batches {
			k := r.flows[i%len(r.flows)]
			packets := uint64(i % 97)
			b.Flows = append(b.Flows, record.FlowSlot{
				Time: at.Add(time.Duration(i/len(r.flows)) * serveSlot), Slot: serveSlot, Flow: k, Packets: packets, Bytes: 1000 * packets, Exact: true,
				Path: []record.FlowHop{
					{Switch: "tor0", Packets: packets},
					{Switch: "agg0", Packets: packets},
					{Switch: "tor1", Packets: packets},
				},
			})
		}
		if err := s.Append(ctx, &b); err != nil {
			return err
		}
	}
	return nil
}

// pipelineTotals returns a pipeline's totals so far: reports analysed, and losses by
// reason, except those by design.
func pipelineTotals(h api.Health) (analysed uint64, lost map[string]uint64) {
	lost = map[string]uint64{}
	for i := range h.Stages {
		st := &h.Stages[i]
		if st.Name == "analyzers" {
			analysed = st.Out
		}
		for _, l := range st.Losses {
			if !l.Expected {
				lost[st.Name+": "+l.Reason] += l.Count
			}
		}
	}
	return analysed, lost
}

// measure returns a pipeline's rates while do runs.
func (b *serveBed) measure(do func()) (rate float64, lost string) {
	before, had := pipelineTotals(b.Health())
	began := time.Now()
	do()
	after, has := pipelineTotals(b.Health())
	var parts []string
	for reason, n := range has {
		if n > had[reason] {
			parts = append(parts, fmt.Sprintf("%s %d", reason, n-had[reason]))
		}
	}
	if lost = strings.Join(parts, ", "); lost == "" {
		lost = "nothing"
	}
	return float64(after-before) / time.Since(began).Seconds(), lost
}

// findSustainedRate raises the rate until reports are lost, and returns the highest
// without loss.
func findSustainedRate(ctx context.Context, r *recording) (copies, rate float64, err error) {
	for try := 0.125; try <= 64; try *= 1.5 {
		b, err := newServeBed(ctx, r, embedded.DefaultConfig().CacheSize, try)
		if err != nil {
			return 0, 0, err
		}
		time.Sleep(serveTry / 2) // until it has started
		got, lost := b.measure(func() { time.Sleep(serveTry) })
		if err := errors.Join(b.close(), ctx.Err()); err != nil {
			return 0, 0, err
		}
		if lost != "nothing" {
			break
		}
		copies, rate = try, got
	}
	if copies == 0 {
		return 0, 0, errors.New("the machine is too busy: reports were lost at the lowest rate")
	}
	return copies, rate, nil
}

// servedResult is the result of a run with queries.
type servedResult struct {
	answers []queryResult
	rate    float64 // reports analysed a second
	lost    string
}

func queryWhileServing(ctx context.Context, r *recording, hot model.Bytes, copies float64) (s servedResult, err error) {
	begin := time.Now().Add(-10 * time.Minute)
	b, err := newServeBed(ctx, r, hot, copies)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	time.Sleep(serveTry)
	q := &queries{rng: rand.New(rand.NewPCG(3, 4)), fabric: b.Fabric(), flows: r.flows, begin: begin}
	s.rate, s.lost = b.measure(func() {
		s.answers = sendQueries(ctx, "http://"+b.Addr().String(), q, serveRate,
			serveAsk)
	})
	return s, ctx.Err()
}
