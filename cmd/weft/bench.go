package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/bench"
)

func (a *app) benchCommand() *cobra.Command {
	var suites []string
	var plots string
	var flowRows int
	cmd := &cobra.Command{
		Use:   "bench [SUITE…]",
		Short: "Benchmark Weft against comparable tools",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			run := bench.Suites()
			if len(args) > 0 {
				run = nil
			}
			for _, name := range args {
				s, err := bench.Find(name)
				if err != nil {
					return usageError{err}
				}
				run = append(run, s)
			}
			if flowRows < 1000 || flowRows > 1e9 {
				return usagef("--flow-rows %d, want 1000 to 1000000000", flowRows)
			}
			for i := range run {
				if top := bench.TopFlows(flowRows); run[i].Name == top.Name {
					run[i] = top
				}
			}
			if plots != "" {
				if err := os.MkdirAll(plots, 0o777); err != nil {
					return fmt.Errorf("--plots: %w", err)
				}
			}
			report := benchReport{Machine: bench.Machine()}
			failed := report.measure(ctx, run, plots, cmd.ErrOrStderr())
			if failed != nil && len(report.Results) == 0 {
				return failed
			}
			var err error
			if a.format == "json" {
				err = printJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.print(cmd.OutOrStdout())
			}
			if err = errors.Join(failed, err); err == nil && report.missed() {
				err = errMissed
			}
			return err
		},
	}
	for _, s := range bench.Suites() {
		suites = append(suites, s.Name+"\t"+s.About)
	}
	cmd.ValidArgs = suites
	cmd.Flags().IntVar(&flowRows, "flow-rows", bench.DefaultFlowRows, "rows in the store of the suite topflows; 10000000 take minutes to store")
	cmd.Flags().StringVar(&plots, "plots", "",
		"also measure how results scale, and write plots (SVG) to this directory")
	cmd.Long = "Benchmark Weft against comparable tools, in one run on the same input.\n\nSuites:\n"
	for _, s := range bench.Suites() {
		cmd.Long += fmt.Sprintf("  %-8s %s\n", s.Name, s.About)
	}
	return cmd
}

// benchReport holds the measurements and the machine they were taken on.
type benchReport struct {
	Machine string         `json:"machine"`
	Results []bench.Result `json:"results"`
}

// measure runs suites one after another. Results measured before a failure stay
// in the report.
func (r *benchReport) measure(ctx context.Context, suites []bench.Suite, plots string, progress io.Writer) error {
	for _, s := range suites {
		fmt.Fprintf(progress, "%s: %s\n  input: %s\n", s.Name, s.About, s.Input)
		results, err := s.Run(ctx)
		if err != nil {
			return fmt.Errorf("bench %s: %w", s.Name, err)
		}
		r.Results = append(r.Results, results...)
		if plots != "" {
			if err := writePlots(ctx, s, plots, progress); err != nil {
				return fmt.Errorf("bench %s: %w", s.Name, err)
			}
		}
	}
	return nil
}

func (r *benchReport) missed() bool {
	return slices.ContainsFunc(r.Results, func(one bench.Result) bool { return one.Skipped == "" && !one.Pass })
}

func (r *benchReport) print(w io.Writer) error {
	fmt.Fprintf(w, "machine: %s\n\n", r.Machine)
	var t table
	t.row("BENCHMARK", "WEFT", "PEER", "", "RATIO", "GOAL", "")
	for _, one := range r.Results {
		goal := fmt.Sprintf("≥ %.3g×", one.Goal)
		if one.Skipped != "" {
			t.row(one.Name, "", "", one.Peer, "", goal, "skipped: "+one.Skipped)
			continue
		}
		verdict := "PASS"
		if !one.Pass {
			verdict = "FAIL"
		}
		t.row(one.Name, figure(one.Value, one.Unit), figure(one.PeerValue, one.Unit), one.Peer, ratio(one), goal,
			strings.TrimSpace(verdict+" "+one.Note))
	}
	return t.print(w)
}

// writePlots writes plots of how a suite's results scale.
func writePlots(ctx context.Context, s bench.Suite, dir string, progress io.Writer) error {
	list, err := s.Plots(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	for _, p := range list {
		name := filepath.Join(dir, p.Name+".svg")
		if err := os.WriteFile(name, []byte(p.Chart.SVG()), 0o666); err != nil {
			return err
		}
		fmt.Fprintf(progress, "  wrote %s\n", name)
	}
	return nil
}

// ratio formats Weft's result over the peer's, with the range over all rounds.
func ratio(r bench.Result) string {
	if r.RatioHigh == 0 {
		return fmt.Sprintf("%.3g×", r.Ratio)
	}
	return fmt.Sprintf("%.3g× (%.3g to %.3g)", r.Ratio, r.RatioLow, r.RatioHigh)
}

// figure formats three significant digits without an exponent.
func figure(v float64, unit string) string {
	digits := 2
	for x := v; x >= 10 && digits > 0; x /= 10 {
		digits--
	}
	return fmt.Sprintf("%.*f %s", digits, v, unit)
}
