package console_test

import (
	"path/filepath"
	"testing"

	"github.com/weft-telemetry/weft/internal/browsertest"
	"github.com/weft-telemetry/weft/scenario"
)

// TestReportInBrowser opens the page of a run with expectations and diagnoses: all columns
// of its verdicts are visible, on a phone, too.
func TestReportInBrowser(t *testing.T) {
	browsertest.Need(t, "web")
	t.Parallel()
	s, err := scenario.Read("../examples/storm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Run(t.Context(), s, scenario.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := r.Run.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	browsertest.Run(t.Context(), t, "web", "test/report.mjs", "file://"+filepath.Join(dir, "report.html"))
}
