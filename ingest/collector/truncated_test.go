package collector

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/region"
)

// TestTruncatedMemoryFileIsAnError: a memory file that another process truncates ends the
// collector with an error that names it, not the process; also with several workers,
// and with a handler of panics. Reports are sent until that has happened.
func TestTruncatedMemoryFileIsAnError(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"one worker":    func(*Config) {},
		"three workers": func(c *Config) { c.Workers = 3 },
		"panics handled": func(c *Config) {
			c.Panic = func(v any, _ []byte) { t.Errorf("panic %v; want it left to the worker", v) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := small(t.TempDir())
			change(&cfg)
			c, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx) }()
			files, err := filepath.Glob(filepath.Join(cfg.Memory.Dir, "*.weft"))
			if err != nil || len(files) == 0 {
				t.Fatalf("memory files %v, %v", files, err)
			}
			for _, path := range files {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: mode %v, %v; want 0600", path, info.Mode(), err)
				}
				if err := os.Truncate(path, 0); err != nil {
					t.Fatal(err)
				}
			}
			c.Status() // reads the memory, too
			r := newReporter(t, 1, c.Addr())
			all := reports(2000)
			for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
				for _, one := range all {
					_ = r.rep.AddReport(0, &one) // a full window is no matter here
				}
				r.flush()
				select {
				case err := <-done:
					if !errors.Is(err, region.ErrTruncated) || !strings.Contains(err.Error(), cfg.Memory.Dir) {
						t.Errorf("Run = %v; want ErrTruncated with a file of %s", err, cfg.Memory.Dir)
					}
					return
				case <-time.After(time.Millisecond):
				}
			}
			t.Fatal("the collector has not ended after a minute")
		})
	}
}
