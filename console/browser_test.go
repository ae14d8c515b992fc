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

// TestBrowser tests the console with Chromium against a demo: every view, an incast
// injected by clicking and its diagnosis, what operators do about it, accessibility, and
// the frame times of a large fabric. WEFT_SHOTS keeps screenshots in a folder.
func TestBrowser(t *testing.T) { runBrowser(t, "test/browser.mjs") }

// TestLargeFabricInBrowser tests the map of a fat-tree of k=32, with a console that a
// demo serves: pods are collapsed, what is drawn is bounded, a click expands a pod,
// incidents are visible, and the map moves while states arrive.
func TestLargeFabricInBrowser(t *testing.T) { runBrowser(t, "test/large.mjs") }

// runBrowser runs a script with the address of a demo.
func runBrowser(t *testing.T, script string) {
	t.Helper()
	browsertest.Need(t, "web")
	o := live.Options{Config: live.DefaultConfig(), Console: console.Files(), Pace: 0.02, Store: filepath.Join(t.TempDir(), "weft.duckdb")}
	livetest.Run(t, o, func(ctx context.Context, url string) {
		args := []string{script, url}
		if shots := os.Getenv("WEFT_SHOTS"); shots != "" {
			args = append(args, shots)
		}
		browsertest.Run(ctx, t, "web", args...)
	})
}
