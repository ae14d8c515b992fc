package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

func (a *app) healthCommand() *cobra.Command {
	var f targetFlags
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Show what a controller receives, loses and refuses, and from whom",
		Long: `Show the stages of a controller from the network to the store, every loss with its
reason, the addresses whose reports it refuses, and its alerts. The exit code is 3
if the controller is not ok, or has no data: no report was received since its start.`,
		Example: `  weft health
  weft health --server https://weft.example:8443 -o json`,
		Args: argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := f.open(cmd, "", live.StartOptions{})
			if err != nil {
				return err
			}
			defer t.close()
			if err := t.finish(cmd.Context()); err != nil {
				return err
			}
			h, err := t.Health(cmd.Context())
			if err != nil {
				return t.explain(err)
			}
			out := cmd.OutOrStdout()
			if a.format == "json" {
				err = printJSON(out, h)
			} else {
				err = printHealth(out, &h)
			}
			if err == nil && h.State != "ok" {
				err = errFault
			}
			return err
		},
	}
	f.register(cmd)
	return cmd
}

func printHealth(w io.Writer, h *api.Health) error {
	fmt.Fprintf(w, "%s, up for %s\n", strings.ReplaceAll(h.State, "-", " "), model.FormatDuration(time.Duration(h.UptimeMs)*time.Millisecond))
	printNoData(w, h.NoData)
	for _, alert := range h.Alerts {
		fmt.Fprintf(w, "alert: %s\n", alert)
	}
	if len(h.Silent) > 0 {
		fmt.Fprintf(w, "silent: %s\n", strings.Join(h.Silent, ", "))
	}
	fmt.Fprintln(w)
	var stages, losses, refused table
	stages.row("STAGE", "STATE", "IN", "OUT", "UNIT", "IN/S", "OUT/S")
	losses.row("LOST", "UNIT", "PER SECOND", "STAGE", "REASON")
	for _, s := range h.Stages {
		stages.row(s.Name, s.State, s.In, s.Out, s.Unit, fmt.Sprintf("%.0f", s.InPerSecond), fmt.Sprintf("%.0f", s.OutPerSecond))
		for _, l := range s.Losses {
			if l.Count > 0 {
				losses.row(l.Count, s.Unit, fmt.Sprintf("%.0f", l.PerSecond), s.Name, lossReason(&l))
			}
		}
	}
	refused.row("REFUSED", "INPUT", "ADDRESS", "REASONS")
	for _, r := range h.Refused {
		refused.row(r.Datagrams, r.Input, r.Address, reasonList(r.Reasons))
	}
	if err := stages.print(w); err != nil {
		return err
	}
	for _, t := range []table{losses, refused} {
		if len(t.rows) == 1 {
			continue
		}
		fmt.Fprintln(w)
		if err := t.print(w); err != nil {
			return err
		}
	}
	if len(losses.rows) == 1 {
		_, err := fmt.Fprintln(w, "\nNothing was lost or refused.")
		return err
	}
	return nil
}

// printNoData prints how to get data into a controller that has none; nothing for nil.
func printNoData(w io.Writer, n *api.NoData) {
	if n == nil {
		return
	}
	fmt.Fprintf(w, "%s\nTo try Weft without switches:\n", n.Text)
	for _, try := range n.Try {
		fmt.Fprintf(w, "  %s\n      %s\n", try.Command, try.About)
	}
}

// explainEmpty prints how to get data below an empty list of a controller that has
// none.
func (t *target) explainEmpty(ctx context.Context, w io.Writer) {
	if t.isScenario() {
		return
	}
	if h, err := t.Health(ctx); err == nil { // the list itself was answered
		printNoData(w, h.NoData)
	}
}

func lossReason(l *api.StageLoss) string {
	text := l.Reason
	if l.About != "" {
		text += ": " + l.About
	}
	if l.Expected {
		text += " (by design)"
	}
	return text
}

// reasonList lists reasons with their counts, the most frequent first.
func reasonList(counts map[string]uint64) string {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, counts[name])
	}
	return strings.Join(names, ", ")
}
