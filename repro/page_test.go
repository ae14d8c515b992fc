package repro

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/repro/claim"
)

// TestPage: the page has every claim with its evidence, and the plots that are beside it.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a-1.svg"), []byte("<svg/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := Measurement{
		Conditions: Conditions{Seed: 7, Quick: true, Build: "1.2 abc"}, Machine: "two cores", When: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Claims: []Outcome{
			{
				ID: "a-1", Where: "§4", Claim: "Fast & small.", Published: "2×", Measured: "3 < 4", Pass: true, Notes: []string{"how <it> was measured"},
				Tables: []claim.Table{{Title: "by size", Header: []string{"size"}, Rows: [][]string{{"12 KB"}}}},
				Plots:  []string{filepath.Join("elsewhere", "a-1.svg"), "a-1-gone.svg"},
			},
			{ID: "a-2", Measured: "0.5×"},
			{ID: "a-3", Error: "no such file"},
		},
	}
	if err := m.WritePage(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, want := range []string{
		"1 of 3 claims pass", "Quick run, seed 7, 2026-03-01 12:00 UTC, weft 1.2 abc, on two cores", "Fast &amp; small.", "3 &lt; 4", "how &lt;it&gt; was measured",
		"12 KB", `<img src="a-1.svg"`, `class="PASS">PASS`, `class="FAIL">FAIL`, `class="ERROR">ERROR`, "no such file", "--ink:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(text, "a-1-gone.svg") {
		t.Error("the page shows a plot that is not there")
	}
}
