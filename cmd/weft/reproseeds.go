package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/bench"
	"github.com/weft-telemetry/weft/repro"
)

// seedOutcome is what one seed gave.
type seedOutcome struct {
	Seed     uint64 `json:"seed"`
	Measured string `json:"measured"`
	Pass     bool   `json:"pass"`
	Error    string `json:"error,omitempty"`
}

// claimSeeds is how a claim fared with several seeds.
type claimSeeds struct {
	ID     string        `json:"id"`
	Passes int           `json:"passes"`
	Seeds  []seedOutcome `json:"seeds"`
}

// verdict is the same for all seeds, or says how often the claim passes.
func (c *claimSeeds) verdict() string {
	switch c.Passes {
	case len(c.Seeds):
		return "PASS"
	case 0:
		return "FAIL"
	}
	return fmt.Sprintf("%d of %d", c.Passes, len(c.Seeds))
}

// measureSeeds measures claims with several seeds: a verdict that depends on the seed says
// little.
func (a *app) measureSeeds(ctx context.Context, cmd *cobra.Command, entries []repro.Entry, f reproFlags) error {
	if f.broken || f.resume != "" || f.out != "" {
		return usageError{errors.New("--seeds compares verdicts, want it without --break, --resume and --out")}
	}
	report := struct {
		Claims  []claimSeeds `json:"claims"`
		Quick   bool         `json:"quick"`
		Machine string       `json:"machine"`
	}{Quick: f.quick, Machine: bench.Machine()}
	progress := newProgressBar(cmd.ErrOrStderr(), false)
	var t table
	t.row("CLAIM", "SEED", "MEASURED", "VERDICT")
	unsteady, failed := 0, 0
	for i, e := range entries {
		c := claimSeeds{ID: e.ID}
		for n := range uint64(f.seeds) {
			of := f
			of.seed = f.seed + n
			r := repro.Run(ctx, e, of.options(progress, fmt.Sprintf("%d of %d  %s seed %d", i+1, len(entries), e.ID, of.seed)), "")
			progress.clear()
			if ctx.Err() != nil {
				return fmt.Errorf("repro %s: %w", e.ID, context.Cause(ctx))
			}
			if r.Pass {
				c.Passes++
			}
			c.Seeds = append(c.Seeds, seedOutcome{of.seed, r.Measured, r.Pass, r.Error})
			t.row(e.ID, of.seed, r.Measured, r.Verdict())
		}
		switch c.Passes {
		case len(c.Seeds):
		case 0:
			failed++
		default:
			unsteady++
		}
		t.row(e.ID, "all", "", c.verdict())
		report.Claims = append(report.Claims, c)
	}
	var err error
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), report)
	} else if err = t.print(cmd.OutOrStdout()); err == nil {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "\nof %d claims %d pass with every seed, %d with none, %d with some\n",
			len(entries), len(entries)-failed-unsteady, failed, unsteady)
	}
	if err == nil && failed+unsteady > 0 {
		err = errMissed
	}
	return err
}
