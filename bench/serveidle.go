package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/store/embedded"
)

const (
	idleTime  = 4 * time.Second
	idleLimit = 10 // percent of a core
)

// measureIdle measures what a service takes of a core while no report arrives, by the
// size of its fabric.
func measureIdle(ctx context.Context) (results []Result, err error) {
	for _, k := range []int{4, 16, 32} {
		used, err := idleShare(ctx, k)
		if err != nil {
			return nil, err
		}
		results = append(results, lowerIsBetter(fmt.Sprintf("idle service, fat-tree k=%d", k), 100*used, "% of a core", "limit", idleLimit, 1))
	}
	return results, nil
}

// idleShare runs a service for a fat-tree without reports, and returns its share of a
// core.
func idleShare(ctx context.Context, k int) (used float64, err error) {
	dir, err := os.MkdirTemp("", "weft-bench-idle")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cfg := serve.DefaultConfig()
	cfg.Topology, cfg.Store.Path = filepath.Join(dir, "fabric.yaml"), filepath.Join(dir, "weft.duckdb")
	cfg.API.Listen, cfg.DTA().Listen = "127.0.0.1:0", netip.MustParseAddrPort("127.0.0.1:0")
	if err := os.WriteFile(cfg.Topology, fmt.Appendf(nil, "generate: {kind: fat-tree, k: %d, rate: 100Gb/s}\n", k), 0o666); err != nil {
		return 0, err
	}
	keep, err := embedded.Open(cfg.Store.Path, embedded.DefaultConfig())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, keep.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := serve.New(ctx, cfg, serve.Deps{Store: keep, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	wait(idleTime / 2) // until it has started
	before, began := processTime(), time.Now()
	wait(idleTime)
	return (processTime() - before).Seconds() / time.Since(began).Seconds(), ctx.Err()
}
