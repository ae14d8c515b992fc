package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/bench"
	"github.com/weft-telemetry/weft/repro"
	"github.com/weft-telemetry/weft/repro/claim"
)

// reproFlags are the flags of weft repro.
type reproFlags struct {
	seed   uint64
	quick  bool
	out    string
	broken bool
	resume string
	seeds  int
}

// options returns the options of one measurement, whose progress is shown after
// its name.
func (f reproFlags) options(bar *progressBar, name string) claim.Options {
	start := time.Now()
	o := claim.Options{Seed: f.seed, Quick: f.quick, Progress: func(done float64, doing string) {
		if bar.terminal {
			fmt.Fprintf(bar.w, "\r%s  %.0f %%  %s  %v\x1b[K", name, 100*done, doing, time.Since(start).Round(time.Second))
		}
	}}
	o.Report(0, "")
	return o
}

func (a *app) reproCommand() *cobra.Command {
	var f reproFlags
	cmd := &cobra.Command{
		Use:   "repro [list | all | PAPER… | CLAIM…]",
		Short: "Reproduce the claims of the papers",
		Long: `Reproduce the claims of the papers that Weft implements with Weft's components, and print the
published value, the measured value, and PASS or FAIL. Without arguments, or with
list, it lists the claims.

With --resume FILE, an interrupted run can be continued by the same command.

The exit code is 1 if a claim failed or could not be measured. The same seed gives
the same results, except for times, which depend on the machine.

With --break, every claim is measured without each mechanism that it names, removed
in the claim's laboratory, and must fail: the exit code is 1 if one still passes.

Papers:
`,
		Example: `  weft repro list
  weft repro flowradar --quick
  weft repro everflow-consistent --quick --break
  weft repro flowradar --quick --seeds 5
  weft repro all --quick --resume outcomes.jsonl
  weft repro all --out plots -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 1 && args[0] == "list" {
				return a.listClaims(cmd.OutOrStdout())
			}
			entries, err := repro.Select(a.papers, args...)
			switch {
			case err != nil:
				return usageError{err}
			case len(entries) == 0:
				return fmt.Errorf("repro %s: this paper has no claims", strings.Join(args, " "))
			}
			if f.out != "" {
				if err := os.MkdirAll(f.out, 0o777); err != nil {
					return fmt.Errorf("--out: %w", err)
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if f.seeds < 1 || f.seeds > 1000 {
				return usageError{fmt.Errorf("--seeds %d, want 1 to 1000", f.seeds)}
			}
			if f.seeds > 1 {
				return a.measureSeeds(ctx, cmd, entries, f)
			}
			if f.broken && f.resume != "" {
				return usageError{errors.New("--resume continues measurements of claims, want it without --break")}
			}
			if f.broken {
				return a.breakClaims(ctx, cmd, entries, f)
			}
			return a.measureClaims(ctx, cmd, entries, f)
		},
	}
	for _, p := range a.papers {
		cmd.Long += fmt.Sprintf("  %-10s %s\n", p.Name, p.Title)
		cmd.ValidArgs = append(cmd.ValidArgs, p.Name+"\t"+p.Title)
		for _, c := range p.Claims {
			cmd.ValidArgs = append(cmd.ValidArgs, c.ID+"\t"+c.Says)
		}
	}
	cmd.ValidArgs = append(cmd.ValidArgs, "list\tprint the claims", "all\tmeasure every claim")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "random seed")
	cmd.Flags().IntVar(&f.seeds, "seeds", 1, "measure with this many seeds, from --seed on, and compare the verdicts")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "fewer trials and smaller sizes: under a minute per claim")
	cmd.Flags().BoolVar(&f.broken, "break", false, "remove each mechanism that a claim names, and expect it to fail")
	cmd.Flags().StringVar(&f.resume, "resume", "", "keep outcomes in this file, and do not measure again what it has with the same seed, size and build")
	cmd.Flags().StringVar(&f.out, "out", "", "write plots (SVG), and a page with all claims (index.html), to this directory")
	return cmd
}

func (a *app) listClaims(w io.Writer) error {
	type row struct {
		ID        string `json:"id"`
		Paper     string `json:"paper"`
		Where     string `json:"where"`
		Claim     string `json:"claim"`
		Published string `json:"published"`
	}
	list := struct {
		Claims []row `json:"claims"`
	}{Claims: []row{}}
	var t table
	t.row("CLAIM", "SECTION", "PUBLISHED", "DESCRIPTION")
	for _, p := range a.papers {
		for _, c := range p.Claims {
			list.Claims = append(list.Claims, row{c.ID, p.Name, c.Where, c.Says, c.Published})
			t.row(c.ID, c.Where, c.Published, c.Says)
		}
	}
	if a.format == "json" {
		return printJSON(w, list)
	}
	return t.print(w)
}

func (a *app) measureClaims(ctx context.Context, cmd *cobra.Command, entries []repro.Entry, f reproFlags) error {
	report := struct {
		Claims  []repro.Outcome `json:"claims"`
		Seed    uint64          `json:"seed"`
		Quick   bool            `json:"quick"`
		Machine string          `json:"machine"`
	}{Seed: f.seed, Quick: f.quick, Machine: bench.Machine()}
	progress := newProgressBar(cmd.ErrOrStderr(), false)
	journal, err := f.openJournal()
	if err != nil {
		return err
	}
	if journal != nil {
		defer journal.Close()
	}
	failed, cpu := 0, 0.0
	for i, e := range entries {
		name := fmt.Sprintf("%d of %d  %s", i+1, len(entries), e.ID)
		r, known := repro.Outcome{}, false
		if journal != nil {
			r, known = journal.Outcome(e.ID)
		}
		if !known {
			o := f.options(progress, name)
			if journal != nil {
				o.Parts = journal.Parts(e.ID)
			}
			r = repro.Run(ctx, e, o, f.out)
			progress.clear()
			if ctx.Err() != nil {
				return fmt.Errorf("repro %s: %w", e.ID, context.Cause(ctx))
			}
			if journal != nil {
				if err := journal.Add(r); err != nil {
					return fmt.Errorf("--resume: %w", err)
				}
			}
		}
		if len(entries) > 1 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s  %s  %.1f s, %.1f s of CPU%s\n", name, r.Verdict(), r.Seconds, r.CPU, ifKnown(known))
			cpu += r.CPU
		}
		report.Claims = append(report.Claims, r)
		if !r.Pass {
			failed++
		}
		if a.format != "json" {
			if err := printOutcome(cmd.OutOrStdout(), r); err != nil {
				return err
			}
		}
	}
	if f.out != "" {
		m := repro.Measurement{Conditions: f.conditions(), Machine: report.Machine, When: time.Now(), Claims: report.Claims}
		if err := m.WritePage(f.out); err != nil {
			return err
		}
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), report)
	} else {
		fmt.Fprintf(cmd.ErrOrStderr(), "measured on %s, with %.0f s of CPU\n", report.Machine, cpu)
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d of %d claims pass\n", len(entries)-failed, len(entries))
	}
	if err == nil && failed > 0 {
		err = errMissed
	}
	return err
}

// conditions are what outcomes depend on.
func (f reproFlags) conditions() repro.Conditions {
	b := readBuildInfo()
	return repro.Conditions{Seed: f.seed, Quick: f.quick, Build: b.Version + " " + b.Commit}
}

// openJournal opens the file of outcomes; nil if there is none.
func (f reproFlags) openJournal() (*repro.Journal, error) {
	if f.resume == "" {
		return nil, nil
	}
	j, err := repro.OpenJournal(f.resume, f.conditions())
	if err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	return j, nil
}

func ifKnown(known bool) string {
	if known {
		return ", measured before"
	}
	return ""
}

func printOutcome(w io.Writer, r repro.Outcome) error {
	verdict := "PASS"
	switch {
	case r.Error != "":
		verdict = "FAIL, " + r.Error
	case !r.Pass:
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%s  (%s, %s)\n", r.ID, r.Paper, r.Where)
	fmt.Fprintf(w, "  claim      %s\n  published  %s\n  measured   %s\n  verdict    %s\n", r.Claim, r.Published,
		r.Measured, verdict)
	for _, tab := range r.Tables {
		fmt.Fprintf(w, "\n  %s\n", tab.Title)
		var t table
		for _, row := range append([][]string{tab.Header}, tab.Rows...) {
			cells := make([]any, len(row))
			for i, c := range row {
				cells[i] = c
			}
			t.row(append([]any{"   "}, cells...)...)
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	if len(r.Notes)+len(r.Plots) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "  - %s\n", n)
	}
	for _, p := range r.Plots {
		fmt.Fprintf(w, "  - plot: %s\n", p)
	}
	_, err := fmt.Fprintln(w)
	return err
}
