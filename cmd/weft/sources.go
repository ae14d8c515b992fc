package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// sourcesFlags are the flags of weft sources.
type sourcesFlags struct {
	targetFlags
	interval time.Duration
}

// switchSource is a row of weft sources.
type switchSource struct {
	api.ReportAge
	PerSecond float64 `json:"per_second"`
}

func (a *app) sourcesCommand() *cobra.Command {
	var f sourcesFlags
	cmd := &cobra.Command{
		Use:   "sources [SWITCH …]",
		Short: "Show which switch reports what, how often and since when not",
		Long: `Show what each switch reports: the kinds of reports that the analyses use, how many
and how often, and the age of the newest. A switch is silent if it reported before and
sends nothing any more. weft health shows what was lost or refused, and why.

Flowsets and port counters count the same packets. A source that contradicts the others is
listed below: lying, resetting or silent.

The exit code is 3 if a switch is silent or a source is wrong.`,
		Example: `  weft sources
  weft sources tor0 tor1 --interval 10s
  weft sources -o json | jq '.items[] | select(.silent)'`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	f.register(cmd)
	cmd.Flags().DurationVar(&f.interval, "interval", time.Second, "time over which rates are measured")
	return cmd
}

func (f *sourcesFlags) run(a *app, cmd *cobra.Command, switches []string) error {
	if f.interval <= 0 || f.interval > time.Hour {
		return usagef("--interval %v, want above 0 and at most 1h", f.interval)
	}
	t, err := f.open(cmd, "", live.StartOptions{})
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	list, wrong, err := t.sourcesOver(cmd.Context(), f.interval, switches)
	if err != nil {
		return t.explain(err)
	}
	out := cmd.OutOrStdout()
	if a.format == "json" {
		err = printJSON(out, struct {
			Items []switchSource    `json:"items"`
			Wrong []api.WrongSource `json:"wrong"`
		}{list, wrong})
	} else {
		if err = printSources(out, list); err == nil {
			err = printWrongSources(out, wrong)
		}
		if len(list) == 0 {
			t.explainEmpty(cmd.Context(), out)
		}
	}
	if err == nil && (len(wrong) > 0 || slices.ContainsFunc(list, func(s switchSource) bool { return s.Silent })) {
		err = errFault
	}
	return err
}

// sourcesOver asks twice, for rates, and returns the sources that are wrong as well.
func (t *target) sourcesOver(ctx context.Context, interval time.Duration, switches []string) ([]switchSource, []api.WrongSource, error) {
	type key struct{ sw, source string }
	first, err := t.Sources(ctx)
	if err != nil {
		return nil, nil, err
	}
	before := map[key]uint64{}
	for i := range first.Items {
		before[key{first.Items[i].Switch, first.Items[i].Source}] = first.Items[i].Reports
	}
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-time.After(interval):
	}
	second, err := t.Sources(ctx)
	if err != nil {
		return nil, nil, err
	}
	took := second.Time.Sub(first.Time).Seconds()
	list := []switchSource{}
	for _, one := range second.Items {
		if len(switches) > 0 && !slices.Contains(switches, one.Switch) {
			continue
		}
		s := switchSource{ReportAge: one}
		// A controller that restarted in between counts from 0.
		if n := before[key{one.Switch, one.Source}]; took > 0 && one.Reports >= n {
			s.PerSecond = float64(one.Reports-n) / took
		}
		list = append(list, s)
	}
	wrong := slices.DeleteFunc(second.Wrong, func(w api.WrongSource) bool {
		return len(switches) > 0 && !slices.Contains(switches, w.Switch)
	})
	return list, append([]api.WrongSource{}, wrong...), nil
}

// printWrongSources prints what contradicts other sources, if anything.
func printWrongSources(w io.Writer, list []api.WrongSource) error {
	if len(list) == 0 {
		return nil
	}
	var rows table
	rows.row("WRONG SOURCE", "STATE", "SINCE", "WHY")
	for i := range list {
		s := &list[i]
		name := s.Switch
		if s.Port != nil && s.Source != "flowset" {
			name += ":" + s.Port.Interface
		}
		rows.row(name+" "+s.Source, s.State, s.First.UTC().Format("15:04:05.000"), s.Text)
	}
	fmt.Fprintln(w)
	return rows.print(w)
}

func printSources(w io.Writer, list []switchSource) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "No switch has reported.")
		return err
	}
	var rows table
	rows.row("SWITCH", "SOURCE", "REPORTS", "PER SECOND", "NEWEST", "STATE")
	silent := map[string]bool{}
	for i := range list {
		s := &list[i]
		state := "ok"
		if s.Silent {
			state, silent[s.Switch] = "silent", true
		}
		rows.row(s.Switch, s.Source, s.Reports, fmt.Sprintf("%.1f", s.PerSecond),
			model.FormatDuration(time.Duration(s.AgeMs*1e6))+" ago", state)
	}
	if err := rows.print(w); err != nil {
		return err
	}
	if len(silent) > 0 {
		fmt.Fprintf(w, "\n%s silent: check them and their path to the collector.\n", plural.Count(len(silent), "switch"))
	}
	return nil
}
