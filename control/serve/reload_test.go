package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/store"
)

// TestReloadTakesAllOrNothing: a configuration that is wrong in one place changes
// nothing in any other.
func TestReloadTakesAllOrNothing(t *testing.T) {
	cfg := testConfig(t)
	cfg.API.Token = "0123456789abcdef"
	b := start(t, cfg)
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"other fabric":     {func(c *Config) { c.Topology = write("f.yaml", "generate: {kind: fat-tree, k: 2}\n") }, "nodes or links have changed"},
		"no topology":      {func(c *Config) { c.Topology = "gone.yaml" }, "gone.yaml"},
		"short token":      {func(c *Config) { c.API.Token = "short" }, "16"},
		"empty token file": {func(c *Config) { c.API.Token, c.API.TokenFile = "", write("token", "\n") }, "is empty, want a token"},
		"no token file":    {func(c *Config) { c.API.Token, c.API.TokenFile = "", "gone" }, "api.token_file"},
		"store too small":  {func(c *Config) { c.Store.MaxSize = 1 }, "size"},
	} {
		next := b.cfg.clone()
		next.Store.Retention[store.Flows] = 77
		if tc.change(&next); name != "short token" && next.API.TokenFile == "" {
			next.API.Token = "another-token-of-16"
		}
		if _, err := b.Reload(t.Context(), next); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: Reload = %v; want an error that tells of %q", name, err, tc.want)
		}
		if _, err := b.api.Clock(t.Context()); err != nil {
			t.Errorf("%s: the old token is not taken any more: %v", name, err)
		}
		if !reflect.DeepEqual(b.applied.Store.Retention, cfg.Store.Retention) {
			t.Errorf("%s: retention has changed", name)
		}
	}
}

// TestReloadStaysClosed: an API that others reach is not opened to everybody by a
// configuration that moves it to loopback at the next start.
func TestReloadStaysClosed(t *testing.T) {
	cfg := testConfig(t)
	cfg.API.Listen, cfg.API.Token = "0.0.0.0:0", "0123456789abcdef"
	b := start(t, cfg)
	next := b.cfg.clone()
	next.API.Listen, next.API.Token = "127.0.0.1:0", ""
	if err := next.Check(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Reload(t.Context(), next); err == nil || !strings.Contains(err.Error(), "is not a loopback address") {
		t.Errorf("Reload = %v; want it refused", err)
	}
}

// TestReloadTakesLevelAndRoutes: and says what needs a restart.
func TestReloadTakesLevelAndRoutes(t *testing.T) {
	cfg := testConfig(t)
	level := &slog.LevelVar{}
	b := startWith(t, cfg, Deps{Log: slog.New(slog.DiscardHandler), Level: level})
	text, err := os.ReadFile(cfg.Topology)
	if err != nil {
		t.Fatal(err)
	}
	next := b.cfg.clone()
	next.Topology = filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(next.Topology, append([]byte("seed: 7\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	next.Log.Level, next.Log.Format, next.Store.Queue = "warn", "json", 5000
	next.Switches = []Switch{{Name: "tor0"}}
	restart, err := b.Reload(t.Context(), next)
	if want := []string{"store.queue", "log.format", "switches"}; err != nil || !slices.Equal(restart, want) {
		t.Errorf("Reload = %v, %v; want a restart for %v", restart, err, want)
	}
	if level.Level() != slog.LevelWarn || b.fabric.routes.Config().Seed != 7 {
		t.Errorf("level %v, routes of seed %d; want warn, and 7", level.Level(), b.fabric.routes.Config().Seed)
	}
}
