package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/traces"
)

func (a *app) counterCommand() *cobra.Command {
	var f runFlags
	var ask countersAsked
	var period time.Duration
	var add []string
	cmd := &cobra.Command{
		Use:   "counter [FILE] [NAME…]",
		Short: "Load, latency and counters of one's own, by mirrored packets",
		Long: `Play a scenario whose switches mirror packets (telemetry of kind mirror), fold the
traces into counters, and show them: all that counted something, or those that
are named, period by period.

Counters count mirrored packets: of a sample they are the sample's. There are
traces, arrived, short, looped, unsettled and lost-mirrors; link/tor0>leaf0 and
latency/tor0>leaf0 of each link (or link/tor0:Ethernet4, by the port that
sends), mux/tor0 of the load balancers below a switch; and those that --add
makes, of the packets that a filter chooses (docs/filters.md).

Without FILE a controller is asked (--server): for all its counters, or for those
that are named over a span of time. --add makes it count from now on, --remove
ends that.`,
		Example: `  weft counter examples/trace.yaml
  weft counter examples/trace.yaml 'link/leaf0>spine0' 'latency/leaf0>spine0' --period 1ms
  weft counter examples/trace.yaml web --add 'web=tcp.port == 80 && hop.switch == leaf4'
  weft counter web --last 1m
  weft counter --add 'web=tcp.port == 80' --server http://127.0.0.1:8080`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.Flags().Changed("server") || !isScenario(args[0]) {
				if _, err := ask.wanted(cmd, "", "period", "seed", "duration", "quiet"); err != nil {
					return err
				}
				return ask.run(a, cmd, args, add)
			}
			if err := serverOnly(cmd, ask.own()...); err != nil {
				return err
			}
			o := traces.Options{Period: period}
			if period < 0 {
				return usagef("--period %v, want more than 0", period)
			}
			for _, text := range add {
				name, filter, ok := strings.Cut(text, "=")
				if !ok {
					return usagef("--add %q, want a name, = and a filter", text)
				}
				o.Counters = append(o.Counters, traces.Counter{Name: name, Filter: filter})
			}
			o.Check = func(w *tracewatch.Watch) error {
				for _, name := range args[1:] {
					if _, err := w.GetCounter(name, 0, forever); err != nil {
						return err
					}
				}
				return nil
			}
			p, err := f.play(cmd, args[:1], o)
			if err != nil {
				return err
			}
			names := args[1:]
			if len(names) == 0 {
				names = p.Counters()
			}
			return a.printCounters(cmd, p.Watch, names)
		},
	}
	fl := cmd.Flags()
	fl.DurationVar(&period, "period", 0, "length of a period; 0 means the whole run")
	fl.StringArrayVar(&add, "add", nil, "count the packets that a filter chooses, as 'web=tcp.port == 80'; may be repeated")
	f.add(cmd)
	ask.add(cmd)
	return cmd
}

// isScenario tells a file from the name of a counter: it is there, or called as
// one.
func isScenario(arg string) bool {
	_, err := os.Stat(arg)
	return err == nil || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg))
}

// counterView is a counter and its values.
type counterView struct {
	Name   string             `json:"name"`
	Points []tracewatch.Point `json:"points"`
}

func (a *app) printCounters(cmd *cobra.Command, w *tracewatch.Watch, names []string) error {
	var list []counterView
	for _, name := range names {
		points, err := w.GetCounter(name, 0, forever)
		if err != nil {
			return usageError{err}
		}
		list = append(list, counterView{name, points})
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), map[string]any{"counters": list})
	}
	var rows []counterRow
	several := false
	for _, c := range list {
		several = several || len(c.Points) > 1
		for _, p := range c.Points {
			rows = append(rows, counterRow{c.Name, p.From.String(), p.Count, p.Bytes, p.Flows, p.Mean, p.Min, p.Max})
		}
	}
	return printCounterRows(cmd.OutOrStdout(), several, rows)
}

// counterRow is a counter in one period.
type counterRow struct {
	name, from     string
	count          uint64
	bytes          model.Bytes
	flows          float64
	mean, min, max time.Duration
}

// printCounterRows prints counters; periods are named where there are several.
func printCounterRows(w io.Writer, several bool, rows []counterRow) error {
	var t table
	head := []any{"COUNTER", "COUNT", "BYTES", "FLOWS", "MEAN", "MIN", "MAX"}
	if several {
		head = append([]any{"FROM"}, head...)
	}
	t.row(head...)
	for _, r := range rows {
		row := []any{r.name, r.count, "-", "-", "-", "-", "-"}
		if r.bytes > 0 {
			row[2], row[3] = r.bytes, fmt.Sprintf("%.0f", r.flows)
		}
		if r.max != 0 || r.min != 0 {
			row[4], row[5], row[6] = r.mean, r.min, r.max
		}
		if several {
			row = append([]any{r.from}, row...)
		}
		t.row(row...)
	}
	return t.print(w)
}
