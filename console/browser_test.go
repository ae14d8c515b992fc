package console_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-telemetry/weft/console"
	"github.com/weft-telemetry/weft/internal/browsertest"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/scenario/live/livetest"
)

func TestMain(m *testing.M) { browsertest.Main(m) }

// TestBrowser tests the console with Chromium against a demo: every view, an incast
// injected by clicking and its diagnosis, what operators do about it, accessibility, the
// frame times of a large fabric, and the map of a fat-tree of k=32: pods are collapsed,
// what is drawn is bounded, a click expands a pod, incidents are visible, and the map moves
// while states arrive; that counted drops are not red, and that what is refused leaves
// nothing that looks like an answer. Scripts share the demo and run side by side. WEFT_SHOTS keeps
// screenshots in a folder.
func TestBrowser(t *testing.T) {
	browsertest.Need(t, "web")
	t.Parallel()
	o := live.Options{Config: live.DefaultConfig(), Console: console.Files(), Pace: 0.01, Store: filepath.Join(t.TempDir(), "weft.duckdb")}
	livetest.Run(t, o, func(ctx context.Context, url string) {
		t.Run("scripts", func(t *testing.T) {
			for _, script := range []string{"browser", "views", "glance", "large"} {
				t.Run(script, func(t *testing.T) {
					t.Parallel()
					args := []string{"test/" + script + ".mjs", url}
					if shots := os.Getenv("WEFT_SHOTS"); shots != "" {
						args = append(args, shots)
					}
					browsertest.Run(ctx, t, "web", args...)
				})
			}
		})
	})
}
