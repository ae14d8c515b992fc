package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// queryPathCommand reads the postcards of a flow of a running controller.
func (a *app) queryPathCommand() *cobra.Command {
	var f targetFlags
	limit := 1
	cmd := &cobra.Command{
		Use:   "path FLOW",
		Short: "Path and latency of a flow's packets (Postcarding)",
		Long: `Read the postcards that switches sent of packets of a flow, from the memory of a
running controller's collector: the path, and latency and queue of each hop. Switches
send postcards of packets with a debug mark, and of a sample of all flows. A hop whose
postcard did not arrive is shown as missing. The exit code is 1 if there are none.`,
		Example: `  weft query path "tcp 10.0.0.2:40000 > 10.0.1.2:80" --server http://127.0.0.1:8080`,
		Args:    argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := model.ParseFlowKey(args[0])
			if err != nil {
				return usageError{err}
			}
			if limit < 1 || limit > 64 {
				return usagef("--packets %d, want 1 to 64", limit)
			}
			t, err := f.open(cmd, "", liveStart)
			if err != nil {
				return err
			}
			defer t.close()
			if err := t.finish(cmd.Context()); err != nil {
				return err
			}
			got, err := t.FlowPostcards(cmd.Context(), key, limit)
			if err != nil {
				return t.explain(err)
			}
			return a.printPostcards(cmd.OutOrStdout(), t, &got)
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&limit, "packets", limit, "newest packets to show, 1 to 64")
	return cmd
}

func (a *app) printPostcards(out io.Writer, t *target, got *api.FlowPostcards) error {
	if len(got.Samples) == 0 {
		return errors.New("no postcards of this flow: no switch chose a packet of it, or other flows overwrote them; mark it, or sample more flows")
	}
	if a.format == "json" {
		return printJSON(out, got)
	}
	for i := range got.Samples {
		s := &got.Samples[i]
		fmt.Fprintf(out, "packet at %s, %s in switches\n", t.clock(s.Time), model.FormatDuration(time.Duration(s.LatencyNs)))
		var rows table
		rows.row("HOP", "SWITCH", "LATENCY", "QUEUE")
		for j := range s.Hops {
			h := &s.Hops[j]
			if h.Missing {
				rows.row(h.Hop, "(missing)", "-", "-")
				continue
			}
			rows.row(h.Hop, h.Switch, model.FormatDuration(time.Duration(h.LatencyNs)), model.FormatBytes(model.Bytes(h.QueueBytes)))
		}
		if last := len(s.Hops) - 1; !s.Complete && !s.Hops[last].Missing && !anyMissing(s.Hops) {
			rows.row(last+1, "(missing)", "-", "-")
		}
		if err := rows.print(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	_, err := fmt.Fprintf(out, "postcards of %s in memory at %s, all hops of %d", plural.Count(got.Found, "packet"), t.clock(got.Time), got.Complete)
	if got.Mixed > 0 {
		fmt.Fprintf(out, "; %d more are mixed up with others, and not shown", got.Mixed)
	}
	fmt.Fprintln(out)
	return err
}

func anyMissing(hops []api.PostcardRow) bool {
	for i := range hops {
		if hops[i].Missing {
			return true
		}
	}
	return false
}
