package repro

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weft-telemetry/weft/repro/claim"
)

// Outcome is a claim after it ran. Its JSON names are fixed.
type Outcome struct {
	ID        string        `json:"id"`
	Paper     string        `json:"paper"`
	Where     string        `json:"where"`
	Claim     string        `json:"claim"`
	Published string        `json:"published"`
	Measured  string        `json:"measured"`
	Pass      bool          `json:"pass"`
	Error     string        `json:"error,omitempty"` // why nothing was measured
	Seconds   float64       `json:"seconds"`
	CPU       float64       `json:"cpu_seconds"` // of all cores; says what a claim costs also on a busy machine
	Notes     []string      `json:"notes,omitempty"`
	Tables    []claim.Table `json:"tables,omitempty"`
	Plots     []string      `json:"plots,omitempty"` // files written
}

// Run measures one claim. An error is part of the outcome, which then did not
// pass. Plots are written to the folder out, unless that is empty.
func Run(ctx context.Context, e Entry, o claim.Options, out string) Outcome {
	r := Outcome{ID: e.ID, Paper: e.Paper, Where: e.Where, Claim: e.Says, Published: e.Published}
	start := time.Now()
	var result claim.Result
	var err error
	spent := claim.CPU(func() { result, err = e.Claim.Run(ctx, o) })
	r.CPU = spent.Round(time.Millisecond).Seconds()
	r.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	r.Measured, r.Pass, r.Notes, r.Tables = result.Measured, result.Pass, result.Notes, result.Tables
	if err == nil && out != "" {
		r.Plots, err = write(out, e.ID, result.Plots)
	}
	if err != nil {
		r.Pass, r.Error = false, err.Error()
	}
	return r
}

func write(dir, id string, plots []claim.Plot) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("plots of %s: %w", id, err)
	}
	var files []string
	for _, p := range plots {
		name := id
		if p.Suffix != "" {
			name += "-" + p.Suffix
		}
		file := filepath.Join(dir, name+".svg")
		if err := os.WriteFile(file, []byte(p.Chart.SVG()), 0o666); err != nil {
			return files, fmt.Errorf("plots of %s: %w", id, err)
		}
		files = append(files, file)
	}
	return files, nil
}
