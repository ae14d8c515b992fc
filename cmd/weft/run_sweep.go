package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/sweep"
)

// sweepFlags are the flags of weft run that change a scenario and run it many times.
type sweepFlags struct {
	seeds    string
	settings []string
	vary     string // KEY=VALUE,VALUE…
	csv      string
	plot     string
	jobs     int
}

func (f *sweepFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.settings, "set", nil, "set a value of the scenario, KEY=VALUE such as fabric.alpha=1/4; repeatable")
	fl.StringVar(&f.seeds, "seeds", "", "run with each of these seeds, e.g. 1..20 or 1,5,7, and sum up the figures")
	fl.StringVar(&f.vary, "vary", "", "with --seeds: run all seeds with each value of a setting, KEY=VALUE,VALUE,… such as fabric.alpha=1/8,1/4,1/2")
	fl.StringVar(&f.plot, "plot", "", "with --seeds: write a plot of every figure that differs between runs, with its confidence band, to this directory")
	fl.StringVar(&f.csv, "csv", "", "with --seeds: keep the figures of every run in this file, and skip the runs it has")
	fl.IntVar(&f.jobs, "jobs", runtime.NumCPU(), "with --seeds: runs at once")
}

// read reads a scenario and applies --set.
func (f *sweepFlags) read(path string) (*scenario.Scenario, error) {
	if len(f.settings) == 0 {
		return scenario.Read(path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	if _, err := scenario.Parse(path, text); err != nil { // its lines are those of the file
		return nil, err
	}
	if text, err = scenario.Override(text, f.settings...); err != nil {
		return nil, usagef("--set: %w", err)
	}
	s, err := scenario.Parse(path, text)
	if err != nil {
		return nil, usagef("--set %s: %w", strings.Join(f.settings, " --set "), err)
	}
	return s, nil
}

// checkedScenario is what --check prints.
type checkedScenario struct {
	File     string `json:"file"`
	Name     string `json:"name"`
	Hosts    int    `json:"hosts"`
	Switches int    `json:"switches"`
	Flows    int    `json:"flows"`
	Faults   int    `json:"faults"`
	Programs int    `json:"telemetry_programs"`
	Expects  int    `json:"expectations"`
}

// checkScenario assembles a scenario and does not run it.
func (a *app) checkScenario(cmd *cobra.Command, s *scenario.Scenario, args []string) error {
	session, err := scenario.Open(s, nil)
	if err != nil {
		return usageError{err}
	}
	f := session.Network.Fabric()
	c := checkedScenario{
		File: strings.Join(args, ""), Name: s.Name, Hosts: len(f.Hosts()), Switches: len(f.Switches()), Flows: session.Network.Flows(),
		Faults: len(s.Faults), Programs: len(s.Telemetry), Expects: len(s.Expect) + len(s.ExpectDiagnoses),
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), c)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The scenario %s is valid: %s, %s, %s, %s, %s; %s simulated.\n", c.Name, nodeCount(f),
		plural.Count(c.Flows, "flow"), plural.Count(c.Faults, "fault"), plural.Count(c.Programs, "telemetry program"),
		plural.Count(c.Expects, "expectation"), model.FormatDuration(s.Duration))
	return err
}

// runSweep runs a scenario with many seeds. The exit code is 1 if a run fails.
func (f *runFlags) runSweep(ctx context.Context, a *app, cmd *cobra.Command, path string) error {
	for _, name := range []string{"seed", "out", "pcap", "hpcc", "check", "cores"} {
		if cmd.Flags().Changed(name) {
			return usagef("--seeds and --%s: want one of them", name)
		}
	}
	seeds, err := sweep.ParseSeeds(f.sweep.seeds)
	if err != nil {
		return usagef("--%w", err)
	}
	if f.sweep.jobs < 1 {
		return usagef("--jobs %d, want 1 or more", f.sweep.jobs)
	}
	if err := checkWritable("csv", f.sweep.csv); err != nil {
		return err
	}
	if f.parquet && f.sweep.csv == "" {
		return usagef("--parquet needs --csv, the file of the runs")
	}
	key, values, err := f.sweep.varied()
	if err != nil {
		return err
	}
	results, title, err := f.runSweeps(ctx, cmd, path, seeds, key, values)
	if errors.Is(err, context.Canceled) && f.sweep.csv != "" {
		return fmt.Errorf("interrupted; the runs so far are in %s, and the same command goes on", f.sweep.csv)
	}
	if err != nil {
		return err
	}
	if err := f.writeSweep(ctx, title, key, values, results); err != nil {
		return err
	}
	return a.printSweeps(cmd, results)
}

// varied returns the setting of --vary and its values; one empty value without it.
func (f *sweepFlags) varied() (key string, values []string, err error) {
	if f.vary == "" {
		return "", []string{""}, nil
	}
	key, list, ok := strings.Cut(f.vary, "=")
	values = strings.Split(list, ",")
	if !ok || key == "" || len(values) < 2 || slices.Contains(values, "") {
		return "", nil, usagef("--vary %q, want a key and two values at least, such as fabric.alpha=1/8,1/4", f.vary)
	}
	return key, values, nil
}

// runSweeps runs all seeds with each value of a setting. All scenarios are read
// before the first one runs.
func (f *runFlags) runSweeps(ctx context.Context, cmd *cobra.Command, path string, seeds []uint64, key string, values []string) (results []*sweep.Result, title string, err error) {
	flags := make([]runFlags, len(values))
	for i, value := range values {
		flags[i] = *f
		if key != "" {
			flags[i].sweep.settings = append(slices.Clone(f.sweep.settings), key+"="+value)
		}
		s, err := flags[i].readScenario(cmd, []string{path})
		if err != nil {
			return nil, "", err
		}
		title = s.Name
	}
	bar := newProgressBar(cmd.ErrOrStderr(), f.quiet)
	defer bar.clear()
	for i := range flags {
		g := &flags[i]
		r, err := sweep.Run(ctx, sweep.Config{
			Scenario: func(uint64) (*scenario.Scenario, error) { return g.readScenario(cmd, []string{path}) },
			Seeds:    seeds, Settings: strings.Join(g.sweep.settings, " "), Jobs: f.sweep.jobs, CSV: f.sweep.csv,
			Progress: func(done int) { bar.showRuns(i*len(seeds)+done, len(values)*len(seeds)) },
		})
		if err != nil {
			return nil, "", err
		}
		results = append(results, r)
	}
	return results, title, nil
}

// writeSweep writes plots and the Parquet file.
func (f *runFlags) writeSweep(ctx context.Context, title, key string, values []string, results []*sweep.Result) error {
	if f.parquet {
		to := strings.TrimSuffix(f.sweep.csv, filepath.Ext(f.sweep.csv)) + ".parquet"
		if err := sweep.WriteParquet(ctx, f.sweep.csv, to); err != nil {
			return err
		}
	}
	if f.sweep.plot == "" {
		return nil
	}
	return sweep.WritePlots(f.sweep.plot, title, key, values, results)
}

// printSweeps prints results; of --vary as a list. The error is that of a run that
// missed an expectation.
func (a *app) printSweeps(cmd *cobra.Command, results []*sweep.Result) (err error) {
	missed := false
	for i, r := range results {
		missed = missed || r.Verdicts[string(scenario.Fail)] > 0
		if a.format == "json" {
			continue
		}
		if i > 0 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := printSweep(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	}
	switch {
	case a.format == "json" && len(results) == 1:
		err = printJSON(cmd.OutOrStdout(), results[0])
	case a.format == "json":
		err = printJSON(cmd.OutOrStdout(), results)
	}
	if err == nil && missed {
		err = errMissed
	}
	return err
}

func printSweep(w io.Writer, r *sweep.Result) error {
	fmt.Fprintf(w, "%s", plural.Count(len(r.Seeds), "run"))
	if r.Settings != "" {
		fmt.Fprintf(w, " with %s", r.Settings)
	}
	if r.Resumed > 0 {
		fmt.Fprintf(w, ", %d of them from the file", r.Resumed)
	}
	for _, v := range []scenario.Verdict{scenario.Pass, scenario.Fail, scenario.UnexpectedFault} {
		if n := r.Verdicts[string(v)]; n > 0 {
			fmt.Fprintf(w, "; %d %s", n, v)
		}
	}
	fmt.Fprint(w, "\n\n")
	var t table
	t.row("FIGURE", "RUNS", "MEAN", "± 95 %", "MIN", "MAX")
	for _, s := range r.Stats {
		if s.Min == 0 && s.Max == 0 {
			continue
		}
		half := "-"
		if s.Runs > 1 {
			half = scenario.FormatFigure(s.Figure, s.HalfWidth)
		}
		t.row(s.Figure, s.Runs, scenario.FormatFigure(s.Figure, s.Mean), half, scenario.FormatFigure(s.Figure, s.Min),
			scenario.FormatFigure(s.Figure, s.Max))
	}
	if err := t.print(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nFigures that are 0 in every run are not listed.")
	return err
}
