package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/labels"
)

// flowLatencyFlags are the flags of weft flow-latency.
type flowLatencyFlags struct {
	runFlags
	labels.Options
}

func (a *app) flowLatencyCommand() *cobra.Command {
	var f flowLatencyFlags
	cmd := &cobra.Command{
		Use:   "flow-latency FILE --flow FLOW",
		Short: "Show the latency of a flow in every switch on its path, from labels",
		Long: `Run a scenario whose switches write labels into packets, have every switch on the path
label the packets of a flow, and show where they spend time, hop by hop. A flow is a
5-tuple, or two hosts for all flows between them.

Link times include the offset between the clocks of the two switches.`,
		Example: `  weft flow-latency examples/labels.yaml --flow 'h0>h9'
  weft flow-latency examples/labels.yaml --flow 'udp 10.0.0.2:10000 > 10.2.0.3:4791' --every 10 -o json`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.Follow) == 0 {
				return usagef("--flow is missing, want at least one")
			}
			if f.Every == 0 {
				return usagef("--every 0, want 1 (every packet) or more")
			}
			r, err := f.run(cmd, args)
			if err != nil {
				return err
			}
			views := newFlowLatencyViews(r)
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), map[string]any{"flows": views})
			}
			return printFlowLatencies(cmd.OutOrStdout(), views)
		},
	}
	f.register(cmd)
	cmd.Flags().StringArrayVar(&f.Follow, "flow", nil, "flow to follow; repeatable")
	cmd.Flags().Uint32Var(&f.Every, "every", 1, "label one in N of its packets")
	cmd.Flags().BoolVar(&f.Adaptive, "adaptive", false, "silent ports write labels more often")
	return cmd
}

// run runs the scenario of a file.
func (f *flowLatencyFlags) run(cmd *cobra.Command, args []string) (*labels.Result, error) {
	s, err := f.readScenario(cmd, args)
	if err != nil {
		return nil, err
	}
	f.Channel = labels.Channel{Delay: s.Management.Delay, Loss: s.Management.Loss, Seed: s.Seed}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	bar := newProgressBar(cmd.ErrOrStderr(), f.quiet)
	r, err := labels.Run(ctx, s, f.Options, bar.show)
	bar.clear()
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, usageError{err}
	}
	bar.done(r.Scenario)
	return r, nil
}

// flowLatencyView is the latency of one flow.
type flowLatencyView struct {
	Flow    string    `json:"flow"`
	Packets int       `json:"packets"`
	Changes int       `json:"path_changes"`
	Hops    []hopView `json:"hops"`
}

type hopView struct {
	Port  string         `json:"port"`
	Min   time.Duration  `json:"min_ns"`
	Mean  time.Duration  `json:"mean_ns"`
	Max   time.Duration  `json:"max_ns"`
	Last  time.Duration  `json:"last_ns"`
	Link  *time.Duration `json:"link_ns,omitempty"` // minimum time on the previous link
	Queue int64          `json:"queue_bytes"`       // newest
}

func newFlowLatencyViews(r *labels.Result) []flowLatencyView {
	views := []flowLatencyView{}
	for _, j := range r.Flows {
		v := flowLatencyView{Flow: j.Flow.String(), Packets: j.Packets, Changes: j.Changes, Hops: []hopView{}}
		for i := range j.Hops {
			h := &j.Hops[i]
			hop := hopView{
				Port: r.Fabric().PortName(h.Port()), Min: h.Min, Mean: h.Mean(), Max: h.Max,
				Last: h.Newest.Latency, Queue: int64(h.Newest.EnqueueDepth),
			}
			if h.MinLink != coverage.NoLink {
				hop.Link = &h.MinLink
			}
			v.Hops = append(v.Hops, hop)
		}
		views = append(views, v)
	}
	return views
}

func printFlowLatencies(w io.Writer, views []flowLatencyView) error {
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s followed", v.Flow, plural.Count(v.Packets, "packet"))
		if v.Changes > 0 {
			fmt.Fprintf(w, ", path changed %s", plural.Count(v.Changes, "time"))
		}
		fmt.Fprintln(w)
		var t table
		t.row("PORT", "MIN", "MEAN", "MAX", "PREVIOUS LINK", "QUEUE")
		var mean time.Duration
		for _, h := range v.Hops {
			link := "-"
			if h.Link != nil {
				link = model.FormatDuration(*h.Link)
			}
			t.row(h.Port, model.FormatDuration(h.Min), model.FormatDuration(h.Mean), model.FormatDuration(h.Max), link,
				model.FormatBytes(model.Bytes(h.Queue)))
			mean += h.Mean
		}
		t.row("sum of the means", "", model.FormatDuration(mean))
		if err := t.print(w); err != nil {
			return err
		}
	}
	return nil
}
