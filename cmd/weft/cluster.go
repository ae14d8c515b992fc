package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/console"
	"github.com/weft-telemetry/weft/control/cluster"
	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream/member"
	"github.com/weft-telemetry/weft/stream/nats"
)

// clusterConn is a process's connection to its cluster.
type clusterConn struct {
	conn        *client.Conn
	broker      *nats.Broker // nil: in other processes
	flows, lead *nats.Stream
	leases      *nats.Leases
	marks       *nats.Marks
	cfg         *serve.Config
	unlimit     func() // restores the limit of memory; nil: there is none
}

// connectCluster starts the embedded server, if there is one here, and opens the streams.
func connectCluster(ctx context.Context, cfg *serve.Config, log *slog.Logger) (_ *clusterConn, err error) {
	c := &clusterConn{cfg: cfg}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.unlimit, err = serve.LimitMember(cfg); err != nil {
		return nil, usageError{err}
	}
	s := &cfg.Stream
	url := s.URL
	if address, embedded := strings.CutPrefix(url, "embedded:"); embedded {
		b := nats.BrokerConfig{Listen: address, Dir: s.Dir, Token: s.Token, MaxStore: 8 * model.GiB, Cluster: s.Cluster, Routes: s.Routes}
		if s.Cluster != "" {
			b.Name = s.Member
		}
		if c.broker, err = nats.StartBroker(b); err != nil {
			return nil, err
		}
		url = c.broker.URL()
	}
	if c.conn, err = nats.Connect(nats.Access{URL: url, Credentials: s.Credentials, Token: s.Token, TLSCA: s.TLSCA, Name: memberName(cfg)}); err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		err = c.open(ctx)
		if err == nil || s.Cluster == "" || ctx.Err() != nil {
			return c, err
		}
		if first { // servers that begin together have to elect one of them
			log.Info("waiting for the other NATS servers", "routes", strings.Join(s.Routes, ","), "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(electionRetry):
		}
	}
}

// electionRetry is how long a member waits for a cluster of servers that is not there yet.
const electionRetry = 500 * time.Millisecond

// open opens what all members share, as far as it is not open.
func (c *clusterConn) open(ctx context.Context) (err error) {
	s := &c.cfg.Stream
	flows := nats.DefaultConfig("weft-flows", s.Partitions)
	flows.Unacknowledged, flows.Replicas, flows.BufferSize = 16*cluster.KeptSlots, s.Replicas, 16*model.MiB
	if c.flows == nil {
		if c.flows, err = nats.Open(ctx, c.conn, flows); err != nil {
			return err
		}
	}
	lead := nats.DefaultConfig("weft-lead", 1+s.Partitions)
	lead.Unacknowledged, lead.Backlog, lead.Replicas, lead.BufferSize = 8192, 32768, s.Replicas, 16*model.MiB
	if c.lead == nil {
		if c.lead, err = nats.Open(ctx, c.conn, lead); err != nil {
			return err
		}
	}
	if c.leases, err = nats.OpenLeases(ctx, c.conn, "weft-leases", s.Lease, s.Replicas); err != nil {
		return err
	}
	c.marks, err = nats.OpenMarks(ctx, c.conn, "weft-marks", s.Replicas)
	return err
}

func (c *clusterConn) streams() cluster.Streams {
	return cluster.Streams{Flows: c.flows, Lead: c.lead, Partitions: c.cfg.Stream.Partitions}
}

func (c *clusterConn) close() (err error) {
	for _, s := range []*nats.Stream{c.flows, c.lead} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if c.conn != nil {
		c.conn.Close()
	}
	if c.broker != nil {
		err = errors.Join(err, c.broker.Close())
	}
	if c.unlimit != nil {
		c.unlimit()
	}
	return err
}

// memberName is the name of this process: letters, digits, - and _.
func memberName(cfg *serve.Config) string {
	if cfg.Stream.Member != "" {
		return cfg.Stream.Member
	}
	host, _ := os.Hostname()
	return strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, fmt.Sprintf("%s-%d", host, os.Getpid()))
}

// runRoles works in the roles of a configuration until a signal ends it.
func runRoles(cmd *cobra.Command, cfg serve.Config) (err error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log, _ := cfg.Log.Logger(cmd.ErrOrStderr())
	controller, err := serve.ControllerConfig(&cfg, nil)
	if err != nil {
		return usageError{err}
	}
	has := func(role string) bool { return slices.Contains(cfg.Roles, role) }
	c, err := connectCluster(ctx, &cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var store serviceStore
	if has("lead") || has("api") {
		if store, err = openServiceStore(ctx, &cfg, log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
	}
	metrics := &cluster.Metrics{Streams: c.streams(), Groups: map[string]*member.Member{}}
	var work []func(context.Context) error
	join := func(group string, partitions int, does member.Work) error {
		m, err := member.New(member.Config{Group: group, ID: memberName(&cfg), Partitions: partitions, Interval: cfg.Stream.Lease / 4}, c.leases, does)
		if err != nil {
			return err
		}
		metrics.Groups[group] = m
		work = append(work, m.Run)
		return nil
	}
	if cfg.Stream.Metrics != "" {
		l, err := net.Listen("tcp", cfg.Stream.Metrics)
		if err != nil {
			return fmt.Errorf("stream.metrics: %w", err)
		}
		work = append(work, func(ctx context.Context) error { return metrics.Serve(ctx, l) })
	}
	if has("decode") || has("receive") {
		metrics.Publisher = cluster.NewPublisher(&controller, c.streams(), nil)
		d := cluster.NewDecoder(cluster.DecoderConfig{
			ID: memberName(&cfg), Leases: c.leases, Interval: cfg.Stream.Lease / 4, Ending: ctx.Done(), Log: log,
			Start: func(ctx context.Context) (func(context.Context) error, error) {
				return c.decoder(ctx, metrics.Publisher, log)
			},
		})
		if err := join(cluster.DecodeGroup, 1, d.Work); err != nil {
			return err
		}
		work = append(work, d.Run)
	}
	if has("analyze") {
		metrics.Analyzers = cluster.NewAnalyzers(&controller, c.streams())
		if err := join(cluster.FlowGroup, cfg.Stream.Partitions, metrics.Analyzers.Work); err != nil {
			return err
		}
	}
	if has("lead") {
		metrics.Leader = &cluster.Leader{
			Config: controller, Streams: c.streams(), Marks: c.marks, Store: store, Log: log, Commit: cluster.DefaultCommit,
			Shed: cluster.ShedConfig{Leases: c.leases, After: 2 * cfg.Stream.Lease, For: shedFor},
		}
		if err := join(cluster.LeadGroup, 1, metrics.Leader.Work); err != nil {
			return err
		}
	}
	if has("api") {
		r, err := serve.NewReader(ctx, cfg, serve.Deps{Store: store, Console: console.Files(), Build: readBuildInfo(), Log: log, Prover: verdictProver(&cfg)})
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Console and API: http://%s/\n", r.Addr())
		work = append(work, r.Run)
	}
	log.Info("ready", "member", memberName(&cfg), "roles", strings.Join(cfg.Roles, ","), "stream", c.conn.ConnectedUrlRedacted())
	return runAll(ctx, work)
}

// runAll runs functions until all have returned; an error of one ends the others.
func runAll(ctx context.Context, work []func(context.Context) error) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, f := range work {
		wg.Go(func() {
			if e := f(ctx); e != nil && !errors.Is(e, context.Canceled) {
				mu.Lock()
				err = errors.Join(err, e)
				mu.Unlock()
				stop()
			}
		})
	}
	wg.Wait()
	return err
}

// decoder receives reports and forwards them.
func (c *clusterConn) decoder(ctx context.Context, to *cluster.Publisher, log *slog.Logger) (func(context.Context) error, error) {
	s, err := serve.New(ctx, *c.cfg, serve.Deps{Log: log, Forward: to})
	if err != nil {
		return nil, err
	}
	log.Info("receiving", "dta", s.Reports())
	return func(ctx context.Context) error {
		err := s.Run(ctx)
		// The next decoder begins after what this one has published.
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if e := errors.Join(c.flows.Flush(flush), c.lead.Flush(flush)); e != nil {
			log.Warn("the broker has not taken all that was received", "error", e)
		}
		return err
	}, nil
}

// shedFor is how long a member that was too slow has no parts.
const shedFor = time.Minute

// flushTimeout is how long a decoder that ends waits for the broker.
const flushTimeout = 5 * time.Second

// printCluster prints the members of a cluster and what they hold.
func printCluster(cmd *cobra.Command, format string, cfg *serve.Config) error {
	if cfg.Stream.URL == "" || strings.HasPrefix(cfg.Stream.URL, "embedded:") {
		return usagef("--cluster needs --stream-url nats://HOST:PORT of the cluster")
	}
	conn, err := nats.Connect(nats.Access{URL: cfg.Stream.URL, Credentials: cfg.Stream.Credentials, Token: cfg.Stream.Token, TLSCA: cfg.Stream.TLSCA})
	if err != nil {
		return err
	}
	defer conn.Close()
	leases, err := nats.OpenLeases(cmd.Context(), conn, "weft-leases", cfg.Stream.Lease, cfg.Stream.Replicas)
	if err != nil {
		return err
	}
	type row struct {
		Group   string `json:"group"`
		Member  string `json:"member"`
		Holding []int  `json:"holding"`
		Shed    bool   `json:"shed,omitempty"`
	}
	list := []row{}
	for _, group := range []string{cluster.LeadGroup, cluster.DecodeGroup, cluster.FlowGroup} {
		g, err := member.Look(cmd.Context(), leases, group)
		if err != nil {
			return err
		}
		held := map[string][]int{}
		for _, m := range g.Members {
			held[m] = []int{}
		}
		for p, m := range g.Holders {
			held[m] = append(held[m], p)
		}
		for _, m := range slices.Sorted(maps.Keys(held)) {
			slices.Sort(held[m])
			list = append(list, row{group, m, held[m], slices.Contains(g.Shed, m)})
		}
	}
	if format == "json" {
		return printJSON(cmd.OutOrStdout(), list)
	}
	var t table
	t.row("GROUP", "MEMBER", "HOLDS")
	for _, r := range list {
		what := strings.Trim(fmt.Sprint(r.Holding), "[]")
		switch {
		case r.Shed:
			what = strings.TrimSpace(what + " shed: too slow for the others")
		case len(r.Holding) == 0:
			what = "nothing: standby"
		case r.Group == cluster.LeadGroup:
			what = "the lead"
		case r.Group == cluster.DecodeGroup:
			what = "the switches"
		default:
			what = "partitions " + what
		}
		t.row(r.Group, r.Member, what)
	}
	return t.print(cmd.OutOrStdout())
}

// forward decodes recordings for a cluster, and waits until its leader has stored what
// follows from them.
func (f *replayFlags) forward(cmd *cobra.Command, inputs []capture.Input) (err error) {
	values := map[string]string{"stream.url": f.stream}
	if f.topology != "" {
		values["topology"] = f.topology
	}
	cfg, err := serve.Source{File: f.config, Env: os.LookupEnv, Flags: values}.Load()
	if err != nil {
		return usageError{err}
	}
	ctx := cmd.Context()
	c, err := connectCluster(ctx, &cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	survey, err := capture.Summarize(cfg.Ports(), inputs...)
	if err != nil {
		return usageError{err}
	}
	controller, err := serve.ControllerConfig(&cfg, survey.Kinds)
	if err != nil {
		return usageError{err}
	}
	to := cluster.NewPublisher(&controller, c.streams(), ctx)
	r, err := serve.NewForwardingReplay(ctx, cfg, survey.Kinds, to)
	if err != nil {
		return err
	}
	defer r.Close()
	in, err := capture.Open(cfg.Ports(), inputs...)
	if err != nil {
		return usageError{err}
	}
	defer in.Close()
	if _, err := r.Run(ctx, in); err != nil {
		return err
	}
	if err := c.waitForLeader(ctx, to); err != nil {
		return err
	}
	_, last := to.Position()
	fmt.Fprintf(cmd.OutOrStdout(), "%d batches of events are analysed and stored\n", last)
	return nil
}

// waitForLeader waits until the leader has stored what follows from all that was published.
func (c *clusterConn) waitForLeader(ctx context.Context, to *cluster.Publisher) error {
	run, last := to.Position()
	for ctx.Err() == nil {
		data, err := c.marks.Get(ctx, cluster.LeadMark)
		if err == nil && data != nil {
			var m cluster.Mark
			// The last batch may be a tick without records after the end.
			if gob.NewDecoder(bytes.NewReader(data)).Decode(&m) == nil && m.Run == run && m.Batch+1 >= last {
				return nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}
