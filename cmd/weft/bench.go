package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/bench"
)

func (a *app) benchCommand() *cobra.Command {
	var suites []string
	var plots string
	cmd := &cobra.Command{
		Use:   "bench [SUITE…]",
		Short: "Measure Weft side by side with its peers",
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
			if plots != "" {
				if err := os.MkdirAll(plots, 0o777); err != nil {
					return fmt.Errorf("--plots: %w", err)
				}
			}
			report := struct {
				Machine string         `json:"machine"`
				Results []bench.Result `json:"results"`
			}{bench.Machine(), nil}
			for _, s := range run {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n  input: %s\n", s.Name, s.About, s.Input)
				results, err := s.Run(ctx)
				if err != nil {
					return fmt.Errorf("bench %s: %w", s.Name, err)
				}
				report.Results = append(report.Results, results...)
				if plots != "" {
					if err := writePlots(ctx, s, plots, cmd.ErrOrStderr()); err != nil {
						return fmt.Errorf("bench %s: %w", s.Name, err)
					}
				}
			}
			missed := false
			var t table
			t.row("BENCHMARK", "WEFT", "PEER", "", "RATIO", "GOAL", "")
			for _, r := range report.Results {
				if r.Skipped != "" {
					t.row(r.Name, "", "", r.Peer, "", fmt.Sprintf("≥ %.3g×", r.Goal), "skipped: "+r.Skipped)
					continue
				}
				verdict := "ok"
				if !r.Pass {
					verdict, missed = "MISSED", true
				}
				t.row(r.Name, figure(r.Value, r.Unit), figure(r.PeerValue, r.Unit), r.Peer, ratio(r), fmt.Sprintf("≥ %.3g×", r.Goal), strings.TrimSpace(verdict+" "+r.Note))
			}
			var err error
			if a.format == "json" {
				err = printJSON(cmd.OutOrStdout(), report)
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "machine: %s\n\n", report.Machine)
				err = t.print(cmd.OutOrStdout())
			}
			if err == nil && missed {
				err = errMissed
			}
			return err
		},
	}
	for _, s := range bench.Suites() {
		suites = append(suites, s.Name+"\t"+s.About)
	}
	cmd.ValidArgs = suites
	cmd.Flags().StringVar(&plots, "plots", "", "also measure how figures grow, and write the plots of it into this folder")
	cmd.Long = "Measure Weft side by side with its peers, both in one run on the same input.\n\nSuites:\n"
	for _, s := range bench.Suites() {
		cmd.Long += fmt.Sprintf("  %-8s %s\n", s.Name, s.About)
	}
	return cmd
}

// writePlots draws how the figures of a suite grow.
func writePlots(ctx context.Context, s bench.Suite, dir string, told io.Writer) error {
	list, err := s.Plots(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	for _, p := range list {
		name := filepath.Join(dir, p.Name+".svg")
		if err := os.WriteFile(name, []byte(p.Chart.SVG()), 0o666); err != nil {
			return err
		}
		fmt.Fprintf(told, "  wrote %s\n", name)
	}
	return nil
}

// ratio prints how two sides compare, and how far the rounds were apart.
func ratio(r bench.Result) string {
	if r.RatioHigh == 0 {
		return fmt.Sprintf("%.3g×", r.Ratio)
	}
	return fmt.Sprintf("%.3g× (%.3g to %.3g)", r.Ratio, r.RatioLow, r.RatioHigh)
}

// figure prints three significant digits without an exponent.
func figure(v float64, unit string) string {
	digits := 2
	for x := v; x >= 10 && digits > 0; x /= 10 {
		digits--
	}
	return fmt.Sprintf("%.*f %s", digits, v, unit)
}
