package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// counterFlags are the flags of weft counter.
type counterFlags struct {
	targetFlags
	timeRange   rangeFlags
	add, remove []string
	step        time.Duration
	period      time.Duration
}

func (a *app) counterCommand() *cobra.Command {
	var f counterFlags
	cmd := &cobra.Command{
		Use:   "counter [FILE] [NAME…]",
		Short: "Show link load, latency and custom counters from mirrored packets",
		Long: `Show counters of mirrored packets (telemetry of kind mirror): all of them, or the
named ones over time. If switches mirror a sample, counters count the sample.

Built-in counters are traces, arrived, lost, looped, unsettled and lost-mirrors;
link/tor0:Ethernet4 and latency/tor0:Ethernet4 of each link, by its sending port (or
link/tor0>leaf0); and mux/tor0 of the load balancers below a switch. --add counts the
packets that match a filter (docs/filters.md), --remove stops counting them.

With FILE it runs that scenario in the simulator. Otherwise it queries a controller
(--server).`,
		Example: `  weft counter --add 'web=tcp.port == 80' --server http://127.0.0.1:8080
  weft counter web --last 1m
  weft counter examples/trace.yaml
  weft counter examples/trace.yaml 'link/leaf0>spine0' 'latency/leaf0>spine0' --period 1ms
  weft counter examples/trace.yaml web --add 'web=tcp.port == 80 && hop.switch == leaf4'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file := ""
			if len(args) > 0 && !cmd.Flags().Changed("server") && isScenarioFile(args[0]) {
				file, args = args[0], args[1:]
			}
			return f.run(a, cmd, file, args)
		},
	}
	f.register(cmd)
	f.timeRange.register(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.add, "add", nil,
		"count the packets that match a filter, NAME=FILTER, e.g. 'web=tcp.port == 80'; repeatable")
	fl.StringArrayVar(&f.remove, "remove", nil, "remove a custom counter; repeatable")
	fl.DurationVar(&f.step, "step", 0, "minimum time between two values; 0 chooses it by the range")
	fl.DurationVar(&f.period, "period", 0, "in a scenario: counting period (default: the whole run)")
	return cmd
}

// isScenarioFile reports whether an argument is a file and not the name of a
// counter: it exists, or has the extension of a scenario.
func isScenarioFile(arg string) bool {
	_, err := os.Stat(arg)
	return err == nil || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg))
}

func (f *counterFlags) run(a *app, cmd *cobra.Command, file string, names []string) error {
	var requests []api.CounterRequest
	for _, text := range f.add {
		name, filter, ok := strings.Cut(text, "=")
		if !ok {
			return usagef("--add %q, want NAME=FILTER", text)
		}
		requests = append(requests, api.CounterRequest{Name: name, Filter: filter})
	}
	switch {
	case f.step < 0:
		return usagef("--step %v, want 0 or more", f.step)
	case f.period < 0:
		return usagef("--period %v, want more than 0", f.period)
	}
	t, err := f.open(cmd, file, live.StartOptions{Need: "mirror", CounterPeriod: f.period})
	if err != nil {
		return err
	}
	defer t.close()
	if !t.isScenario() && cmd.Flags().Changed("period") {
		return usagef("--period needs a scenario; the controller's configuration sets its period")
	}
	r, err := f.timeRange.parse(t)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	for _, request := range requests {
		if _, err := t.AddCounter(ctx, request); err != nil {
			return t.explainFilter(ctx, err, "traces", request.Filter)
		}
	}
	for _, name := range f.remove {
		if err := t.RemoveCounter(ctx, name); err != nil {
			return t.explain(err)
		}
	}
	if t.isScenario() {
		for _, name := range names { // find unknown names before the run
			if _, err := t.Counter(ctx, name, api.Range{}, f.step); err != nil {
				return t.explainCounter(err)
			}
		}
	}
	if err := t.finish(ctx); err != nil {
		return err
	}
	if len(names) > 0 {
		return f.printSeries(a, cmd, t, names, r)
	}
	return f.printAll(ctx, a, cmd, t)
}

// printAll prints every counter that counted something.
func (f *counterFlags) printAll(ctx context.Context, a *app, cmd *cobra.Command, t *target) error {
	list, err := t.BuiltInCounters(ctx)
	if err != nil {
		return t.explain(err)
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), api.Page[api.Counter]{Items: list})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "no counters; --add adds one")
		return err
	}
	var rows table
	rows.row("COUNTER", "PACKETS", "BYTES", "FLOWS", "MEAN", "MIN", "MAX", "PERIOD", "FILTER")
	for i := range list {
		c := &list[i]
		rows.row(append(append([]any{c.Name}, counterCells(&c.CounterValue)...),
			t.periodText(time.Duration(c.PeriodNs)), dash(c.Filter))...)
	}
	return rows.print(cmd.OutOrStdout())
}

// printSeries prints counters over time.
func (f *counterFlags) printSeries(a *app, cmd *cobra.Command, t *target, names []string, r api.Range) error {
	all := []api.CounterSeries{}
	var rows table
	rows.row("TIME", "COUNTER", "PACKETS", "BYTES", "FLOWS", "MEAN", "MIN", "MAX")
	for _, name := range names {
		s, err := t.Counter(cmd.Context(), name, r, f.step)
		if err != nil {
			return t.explainCounter(err)
		}
		all = append(all, s)
		for i := range s.Series {
			p := &s.Series[i]
			rows.row(append([]any{t.clock(p.Time), name}, counterCells(&p.CounterValue)...)...)
		}
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), map[string]any{"counters": all})
	}
	return rows.print(cmd.OutOrStdout())
}

// periodText formats the period of a counter.
func (t *target) periodText(period time.Duration) string {
	if t.isScenario() && period > t.live.Duration() {
		return "whole run"
	}
	return model.FormatDuration(period)
}

// explainCounter is explain for a query of a counter: an unknown name is a usage
// error.
func (t *target) explainCounter(err error) error {
	if errors.Is(err, api.ErrNotFound) {
		return usageError{err}
	}
	return t.explain(err)
}

// counterCells formats a counter's value: bytes and flows of loads, times of
// latencies.
func counterCells(v *api.CounterValue) []any {
	cells := []any{v.Packets, "-", "-", "-", "-", "-"}
	if v.Bytes > 0 {
		cells[1], cells[2] = model.FormatBytes(model.Bytes(v.Bytes)), fmt.Sprintf("%.0f", v.Flows)
	}
	if v.MaxNs != 0 || v.MinNs != 0 {
		for i, ns := range []int64{v.MeanNs, v.MinNs, v.MaxNs} {
			cells[3+i] = model.FormatDuration(time.Duration(ns))
		}
	}
	return cells
}
