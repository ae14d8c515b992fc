package console_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/console"
	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/internal/browsertest"
	"github.com/weft-telemetry/weft/store/embedded"
)

// TestNoDataInBrowser opens the console of a service that has received nothing: it says
// so, where switches send reports to, and what to try. A wrong token is answered first.
func TestNoDataInBrowser(t *testing.T) {
	browsertest.Need(t, "web")
	t.Parallel()
	dir := t.TempDir()
	cfg := serve.DefaultConfig()
	cfg.Topology, cfg.API.Listen = filepath.Join(dir, "fabric.yaml"), "127.0.0.1:0"
	if err := os.WriteFile(cfg.Topology, []byte("generate: {kind: fat-tree, k: 4}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.API.Token = "0123456789abcdef"
	for _, s := range serve.Settings() {
		if s.Key == "dta.listen" {
			if err := s.Set(&cfg, "127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
		}
	}
	store, err := embedded.Open(filepath.Join(dir, "weft.duckdb"), embedded.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, stop := context.WithTimeout(t.Context(), 8*time.Minute)
	s, err := serve.New(ctx, cfg, serve.Deps{Store: store, Console: console.Files(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	browsertest.Run(ctx, t, "web", "test/nodata.mjs", "http://"+s.Addr().String()+"/", cfg.API.Token)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
