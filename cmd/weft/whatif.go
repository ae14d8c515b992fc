package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/whatif"
)

func (a *app) whatifCommand() *cobra.Command {
	var fail, drain, jobs []string
	var top int
	cmd := &cobra.Command{
		Use:   "whatif FILE",
		Short: "Forecast load and slowdown after links fail, nodes are drained or jobs are added",
		Long: `Forecast a change of a fabric before it is made: the load of links and the slowdown of
jobs before and after, flows that lose their path, hosts that are cut off, and cyclic
buffer dependencies that the change closes.

FILE is a topology or a scenario. The jobs of a scenario are its traffic; where there
are none, each host sends to eight others. Flows share links max-min fairly; nothing is
simulated. A job file has the section traffic of a scenario.

The exit code is 3 if flows or hosts lose their path, or a cycle is closed.`,
		Example: `  weft whatif fabric.yaml --drain spine0
  weft whatif training.yaml --fail 'tor0>leaf1' --fail leaf2:Ethernet12
  weft whatif training.yaml --add-job job.yaml -o json`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 1 {
				return usagef("--top %d, want at least 1", top)
			}
			if len(fail)+len(drain)+len(jobs) == 0 {
				return usagef("no change, want --fail, --drain or --add-job")
			}
			s, err := scenario.ReadFabric(args[0])
			if err != nil {
				return err
			}
			change := whatif.Change{Jobs: jobs}
			fabric := s.Topology.Fabric
			for _, name := range fail {
				p, err := s.Port(name)
				if err != nil {
					return usagef("--fail %s: %w", name, err)
				}
				change.Links = append(change.Links, fabric.Port(p).Link)
			}
			for _, name := range drain {
				id, ok := fabric.ByName(name)
				if !ok {
					return usagef("--drain %s: no such node, want one of the topology", name)
				}
				change.Drain = append(change.Drain, id)
			}
			answer, err := whatif.Ask(s, change)
			if err != nil {
				return err
			}
			if a.format == "json" {
				err = printJSON(cmd.OutOrStdout(), answer)
			} else {
				err = printWhatif(cmd.OutOrStdout(), answer, top)
			}
			if err == nil && answer.AtRisk() {
				err = errFault
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&fail, "fail", nil, "link that fails, by one of its ports such as tor0:Ethernet4 or 'tor0>leaf1'; repeatable")
	cmd.Flags().StringArrayVar(&drain, "drain", nil, "switch that routes avoid, or host without traffic; repeatable")
	cmd.Flags().StringArrayVar(&jobs, "add-job", nil, "file with the traffic of another job; repeatable")
	cmd.Flags().IntVar(&top, "top", 10, "number of links to print")
	return cmd
}

func printWhatif(w io.Writer, a *whatif.Answer, top int) error {
	var states table
	states.row(a.Fabric, "before", "after")
	b, n := &a.Before, &a.After
	states.row("flows", fmt.Sprint(b.Flows), fmt.Sprint(n.Flows))
	states.row("flows without a path", fmt.Sprint(b.NoPath), fmt.Sprint(n.NoPath))
	states.row("mean slowdown", fmt.Sprintf("%.2f", b.MeanSlowdown), fmt.Sprintf("%.2f", n.MeanSlowdown))
	states.row("highest slowdown", fmt.Sprintf("%.2f", b.MaxSlowdown), fmt.Sprintf("%.2f", n.MaxSlowdown))
	states.row("full links", fmt.Sprint(b.FullLinks), fmt.Sprint(n.FullLinks))
	for _, j := range a.Jobs {
		before := fmt.Sprintf("%.2f", j.Before)
		if j.Added {
			before = "-"
		}
		states.row("slowdown of "+j.Name, before, fmt.Sprintf("%.2f", j.After))
	}
	if err := states.print(w); err != nil {
		return err
	}
	if len(a.Links) > 0 {
		fmt.Fprintln(w)
		var links table
		links.row("link", "before", "after")
		for _, l := range a.Links[:min(len(a.Links), top)] {
			links.row(l.Port, model.FormatShare(l.Before), model.FormatShare(l.After))
		}
		if err := links.print(w); err != nil {
			return err
		}
		if more := len(a.Links) - top; more > 0 {
			fmt.Fprintf(w, "%d more links change their load\n", more)
		}
	}
	fmt.Fprintln(w)
	if len(a.CutOff) > 0 {
		fmt.Fprintf(w, "cut off: %s\n", joinSome(a.CutOff, maxFailuresShown))
	}
	if a.LostPairs > 0 {
		fmt.Fprintf(w, "risk: no route for %s, for example %s\n", plural.Count(a.LostPairs, "ordered host pair"), a.Lost)
	}
	for _, c := range a.Cycles {
		fmt.Fprintf(w, "risk: cyclic buffer dependency of %s; PFC can deadlock them\n", strings.Join(c, ", "))
	}
	if !a.AtRisk() {
		fmt.Fprintln(w, "risk: none; every flow has a path, and no cyclic buffer dependency is new")
	}
	if a.Sampled {
		fmt.Fprintln(w, "the file has no jobs: each host sends to eight others")
	}
	return nil
}
