package siege

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
)

// childDir is the variable that makes the test binary a service: the folder of its
// configuration.
const childDir = "WEFT_SIEGE_SERVICE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := runService(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// addresses are where a service listens.
type addresses struct {
	DTA, INT, ERSPAN netip.AddrPort
	API              string
}

// runService is weft serve with the configuration in a folder. It tells its
// addresses by a file.
func runService(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, err := serve.Source{File: filepath.Join(dir, "serve.yaml")}.Load()
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ) // a write to a file that has its full size fails instead
	now, err := openClock(filepath.Join(dir, "clock"))
	if err != nil {
		return err
	}
	log, level := cfg.Log.Logger(os.Stderr)
	c := embedded.DefaultConfig()
	c.Retention, c.MaxSize, c.Memory, c.CacheSize = cfg.Store.Retention, cfg.Store.MaxSize, cfg.Store.Memory, cfg.Store.Hot
	c.Repair, c.Log = true, log
	store, err := embedded.Open(cfg.Store.Path, c)
	if err != nil {
		return err
	}
	stream, err := inproc.New(inproc.DefaultConfig())
	if err != nil {
		return err
	}
	s, err := serve.New(ctx, cfg, serve.Deps{Store: store, Stream: stream, Log: log, Level: level, Now: now.shown, Elapsed: now.elapsed})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	told, err := json.Marshal(addresses{DTA: s.Reports(), INT: s.SourceAddr("int"), ERSPAN: s.SourceAddr("erspan"), API: s.Addr().String()})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "addresses.tmp"), told, 0o600)
	}
	if err = errors.Join(err, os.Rename(filepath.Join(dir, "addresses.tmp"), filepath.Join(dir, "addresses.json"))); err != nil {
		return errors.Join(err, s.Close(), store.Close())
	}
	return errors.Join(s.Run(ctx), store.Close())
}
