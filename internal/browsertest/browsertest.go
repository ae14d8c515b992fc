// Package browsertest runs the console's scripts with Node and Chromium, for tests.
package browsertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weft-telemetry/weft/internal/race"
)

// Need skips a test without the programs it needs. Web is the folder of the scripts.
func Need(t *testing.T, web string) {
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
	if _, err := os.Stat(filepath.Join(web, "node_modules/playwright-core")); err != nil {
		t.Skip("web/node_modules is missing (make test installs it with Node 20), so the console is not tested in a browser")
	}
}

// Run runs a script of the folder web with Node.
func Run(ctx context.Context, t *testing.T, web string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = web
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("browser: %v", err)
	}
}
