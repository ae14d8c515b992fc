package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/scenario/ports"
)

func (a *app) flowLatencyCommand() *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "flow-latency FILE --flow FLOW",
		Short: "Time that a flow's packets spend in every switch on their way, by labels",
		Long: `Play a scenario whose switches write labels into passing packets, with flows that
every switch on the way shall label, and tell hop by hop where their packets
spend time. A flow is a 5-tuple, or two hosts for all flows between them.

Times on links hold the difference of the two switches' clocks.`,
		Example: `  weft flow-latency examples/labels.yaml --flow 'h0>h9'
  weft flow-latency examples/labels.yaml --flow 'udp 10.0.0.2:10000 > 10.2.0.3:4791' --every 10 -o json`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.Follow) == 0 {
				return usagef("no --flow, want at least one")
			}
			if f.Every == 0 {
				return usagef("--every 0, want 1 (every packet) or more")
			}
			p, err := f.play(cmd, args)
			if err != nil {
				return err
			}
			views := newJourneys(p)
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), map[string]any{"flows": views})
			}
			return printJourneys(cmd.OutOrStdout(), views)
		},
	}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&f.Follow, "flow", nil, "flow to follow; may be repeated")
	cmd.Flags().Uint32Var(&f.Every, "every", 1, "label one in so many of its packets")
	return cmd
}

// journeyView is one followed flow.
type journeyView struct {
	Flow    string    `json:"flow"`
	Packets int       `json:"packets"`
	Changes int       `json:"way_changes"`
	Hops    []hopView `json:"hops"`
}

type hopView struct {
	Port  string         `json:"port"`
	Least time.Duration  `json:"least_ns"`
	Mean  time.Duration  `json:"mean_ns"`
	Most  time.Duration  `json:"most_ns"`
	Last  time.Duration  `json:"last_ns"`
	Link  *time.Duration `json:"link_ns,omitempty"` // least time on the link before
	Depth int64          `json:"depth_bytes"`       // newest
}

func newJourneys(p *ports.Played) []journeyView {
	views := []journeyView{}
	for _, j := range p.Flows {
		v := journeyView{Flow: j.Flow.String(), Packets: j.Packets, Changes: j.Changes, Hops: []hopView{}}
		for i := range j.Hops {
			h := &j.Hops[i]
			hop := hopView{
				Port: p.Fabric().LinkName(h.Port()), Least: h.Least, Mean: h.Mean(), Most: h.Most,
				Last: h.Newest.Latency, Depth: int64(h.Newest.EnqueueDepth),
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

func printJourneys(w io.Writer, views []journeyView) error {
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s followed", v.Flow, plural.Count(v.Packets, "packet"))
		if v.Changes > 0 {
			fmt.Fprintf(w, ", way changed %s", plural.Count(v.Changes, "time"))
		}
		fmt.Fprintln(w)
		var t table
		t.row("HOP", "LEAST", "MEAN", "MOST", "LINK BEFORE", "DEPTH")
		var mean time.Duration
		for _, h := range v.Hops {
			link := "-"
			if h.Link != nil {
				link = h.Link.String()
			}
			t.row(h.Port, h.Least, h.Mean, h.Most, link, h.Depth)
			mean += h.Mean
		}
		t.row("all switches", "", mean)
		if err := t.print(w); err != nil {
			return err
		}
	}
	return nil
}
