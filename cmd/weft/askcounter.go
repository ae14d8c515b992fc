package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/model"
)

// countersAsked is weft counter of a controller.
type countersAsked struct {
	serverFlags
	span   spanFlags
	remove []string
	step   time.Duration
}

func (f *countersAsked) add(cmd *cobra.Command) {
	f.serverFlags.add(cmd)
	f.span.addOfRecords(cmd, "of a controller: ")
	cmd.Flags().StringArrayVar(&f.remove, "remove", nil, "of a controller: end a counter of one's own; may be repeated")
	cmd.Flags().DurationVar(&f.step, "step", 0, "of a controller: steps of the series; 0: as fits")
}

// own are the flags that scenarios do not know.
func (f *countersAsked) own() []string { return []string{"remove", "step", "last", "from", "to"} }

func (f *countersAsked) run(a *app, cmd *cobra.Command, names, add []string) error {
	if f.step < 0 {
		return usagef("--step %v, want 0 or more", f.step)
	}
	c, err := f.client()
	if err != nil {
		return err
	}
	for _, text := range add {
		name, filter, ok := strings.Cut(text, "=")
		if !ok {
			return usagef("--add %q, want a name, = and a filter", text)
		}
		if _, err := c.AddCounter(cmd.Context(), api.CounterRequest{Name: name, Filter: filter}); err != nil {
			return f.advice(err)
		}
	}
	for _, name := range f.remove {
		if err := c.RemoveCounter(cmd.Context(), name); err != nil {
			return f.advice(err)
		}
	}
	if len(names) > 0 {
		return f.series(a, cmd, c, names)
	}
	list, err := c.Counters(cmd.Context())
	if err != nil {
		return f.advice(err)
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), api.Page[api.Counter]{Items: list})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "no counters; --add makes one")
		return err
	}
	var t table
	t.row("COUNTER", "COUNT", "BYTES", "FLOWS", "PERIOD", "FILTER")
	for i := range list {
		n := &list[i]
		t.row(n.Name, n.Packets, model.Bytes(n.Bytes), fmt.Sprintf("%.0f", n.Flows), time.Duration(n.PeriodNs), n.Filter)
	}
	return t.print(cmd.OutOrStdout())
}

// series shows counters over time.
func (f *countersAsked) series(a *app, cmd *cobra.Command, c *client.Client, names []string) error {
	span, err := f.span.ofRecords()
	if err != nil {
		return err
	}
	all := []api.CounterSeries{}
	var rows []counterRow
	for _, name := range names {
		s, err := c.Counter(cmd.Context(), name, span, f.step)
		if err != nil {
			return f.advice(err)
		}
		all = append(all, s)
		for _, p := range s.Series {
			rows = append(rows, counterRow{name: name, from: clock(p.Time), count: p.Packets, bytes: model.Bytes(p.Bytes), flows: p.Flows})
		}
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), map[string]any{"counters": all})
	}
	return printCounterRows(cmd.OutOrStdout(), true, rows)
}
