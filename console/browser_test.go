package console_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/console"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/scenario/live"
)

// TestBrowser tests the console with Chromium against a demo: every view, an incast
// injected by clicking and its diagnosis, accessibility, and the frame times of a
// large fabric. WEFT_SHOTS keeps screenshots in a folder.
func TestBrowser(t *testing.T) { runBrowser(t, "test/browser.mjs") }

// TestLargeFabricInBrowser tests the map of a fat-tree of k=32, with a console that a
// demo serves: pods are collapsed, what is drawn is bounded, a click expands a pod,
// incidents are visible, and the map moves while states arrive.
func TestLargeFabricInBrowser(t *testing.T) { runBrowser(t, "test/large.mjs") }

// runBrowser runs a script with the address of a demo.
func runBrowser(t *testing.T, script string) {
	t.Helper()
	needBrowser(t)
	runDemo(t, live.Options{Pace: 0.02, Store: filepath.Join(t.TempDir(), "weft.duckdb")}, func(ctx context.Context, url string) {
		args := []string{script, url}
		if shots := os.Getenv("WEFT_SHOTS"); shots != "" {
			args = append(args, shots)
		}
		runScript(ctx, t, args...)
	})
}

// needBrowser skips a test without the programs it needs.
func needBrowser(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes a while")
	}
	race.LeaveToPlainRun(t)
	for _, need := range []string{"node", "chromium"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("%s is not installed, so the console is not tested in a browser", need)
		}
	}
	if _, err := os.Stat("web/node_modules/playwright-core"); err != nil {
		t.Skip("web/node_modules is missing (make test installs it with Node 20), so the console is not tested in a browser")
	}
}

// runDemo runs a demo while use is running.
func runDemo(t *testing.T, o live.Options, use func(ctx context.Context, url string)) {
	t.Helper()
	o.Config, o.Listen, o.Console = live.DefaultConfig(), "127.0.0.1:0", console.Files()
	o.Build, o.Log = api.Build{Version: "test"}, slog.New(slog.DiscardHandler)
	s, err := live.NewSystem(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 8*time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	use(ctx, "http://"+s.Addr().String()+"/")
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("demo: %v", err)
	}
}

// runScript runs a script of web with Node.
func runScript(ctx context.Context, t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = "web"
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("browser: %v", err)
	}
}
