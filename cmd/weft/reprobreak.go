package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/bench"
	"github.com/weft-telemetry/weft/repro"
)

// breakClaims measures claims without each of the mechanisms that they name, and
// fails if one of them passes all the same.
func (a *app) breakClaims(ctx context.Context, cmd *cobra.Command, entries []repro.Entry, f reproFlags) error {
	report := struct {
		Mutations []repro.Break `json:"mutations"`
		Seed      uint64        `json:"seed"`
		Quick     bool          `json:"quick"`
		Machine   string        `json:"machine"`
	}{Mutations: []repro.Break{}, Seed: f.seed, Quick: f.quick, Machine: bench.Machine()}
	progress := newProgressBar(cmd.ErrOrStderr(), false)
	var t table
	t.row("CLAIM", "MUTATION", "MEASURED", "VERDICT")
	var without []string // claims without mutations
	missed := 0
	for i, e := range entries {
		if len(e.Mutations) == 0 {
			without = append(without, e.ID)
		}
		for _, m := range e.Mutations {
			b := repro.RunWithout(ctx, e, m, f.options(progress, fmt.Sprintf("%d of %d  %s without %s", i+1, len(entries), e.ID, m.Name)))
			progress.clear()
			if ctx.Err() != nil {
				return fmt.Errorf("repro %s: %w", e.ID, context.Cause(ctx))
			}
			report.Mutations = append(report.Mutations, b)
			t.row(e.ID, m.Name, b.Measured, b.Verdict())
			if !b.Caught() {
				missed++
			}
		}
	}
	if a.format == "json" {
		if err := printJSON(cmd.OutOrStdout(), report); err != nil {
			return err
		}
	} else if err := a.printBreaks(cmd, &t, report.Mutations, missed); err != nil {
		return err
	}
	switch {
	case len(without) > 0:
		return fmt.Errorf("repro --break: nothing to remove from %s, want a mutation for every claim", strings.Join(without, ", "))
	case missed > 0:
		return errMissed
	}
	return nil
}

func (a *app) printBreaks(cmd *cobra.Command, t *table, all []repro.Break, missed int) error {
	w := cmd.OutOrStdout()
	if err := t.print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, b := range all {
		fmt.Fprintf(w, "  - %s without %s: %s\n", b.ID, b.Name, b.Removes)
	}
	_, err := fmt.Fprintf(w, "\n%d of %d mutations make their claim fail\n", len(all)-missed, len(all))
	return err
}
