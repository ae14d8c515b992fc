package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/scenario/served"
	"github.com/weft-telemetry/weft/scenario/whatif"
)

// whatifFlags are the flags of weft whatif.
type whatifFlags struct {
	targetFlags
	fail, drain, jobs []string
	fabric, last      string
	flows, top        int
}

func (a *app) whatifCommand() *cobra.Command {
	var f whatifFlags
	cmd := &cobra.Command{
		Use:   "whatif [FILE]",
		Short: "Forecast load and slowdown after links fail, nodes are drained or jobs are added",
		Long: `Forecast a change of a fabric before it is made: the load of links and the slowdown of
jobs before and after, flows that lose their path, hosts that are cut off, and cyclic
buffer dependencies that the change closes.

FILE is a topology or a scenario. The jobs of a scenario are its traffic; where there
are none, each host sends to eight others. Without FILE a running controller is asked:
its topology, its jobs, and the rates and paths of the flows that it counted (--last).
A flow is taken to want the rate that it had. Static routes are in no answer of it:
--fabric names a file with them.

Flows share links max-min fairly; nothing is simulated. A job file has the section
traffic of a scenario.

The exit code is 3 if flows or hosts lose their path, or a cycle is closed.`,
		Example: `  weft whatif fabric.yaml --drain spine0
  weft whatif training.yaml --fail 'tor0>leaf1' --fail leaf2:Ethernet12
  weft whatif training.yaml --add-job job.yaml -o json
  weft whatif --server http://127.0.0.1:8080 --drain spine0`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	f.register(cmd)
	cmd.Flags().StringArrayVar(&f.fail, "fail", nil, "link that fails, by one of its ports such as tor0:Ethernet4 or 'tor0>leaf1'; repeatable")
	cmd.Flags().StringArrayVar(&f.drain, "drain", nil, "switch that routes avoid, or host without traffic; repeatable")
	cmd.Flags().StringArrayVar(&f.jobs, "add-job", nil, "file with the traffic of another job; repeatable")
	cmd.Flags().StringVar(&f.fabric, "fabric", "", "scenario or topology file with the static routes of the controller's fabric")
	cmd.Flags().StringVar(&f.last, "last", "", "rates are means over this long until now by the fabric's clock (default 10s; the whole run with --scenario)")
	cmd.Flags().IntVar(&f.flows, "flows", 20_000, "number of flows to ask the controller for, the largest first")
	cmd.Flags().IntVar(&f.top, "top", 10, "number of links to print")
	return cmd
}

func (f *whatifFlags) run(a *app, cmd *cobra.Command, args []string) error {
	switch {
	case f.top < 1:
		return usagef("--top %d, want at least 1", f.top)
	case f.flows < 1 || f.flows > maxPages*maxTop:
		return usagef("--flows %d, want 1 to %d", f.flows, maxPages*maxTop)
	case len(f.fail)+len(f.drain)+len(f.jobs) == 0:
		return usagef("no change, want --fail, --drain or --add-job")
	}
	answer, err := f.ask(cmd, args)
	if err != nil {
		return err
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), answer)
	} else {
		err = printWhatif(cmd.OutOrStdout(), answer, f.top)
	}
	if err == nil && answer.AtRisk() {
		err = errFault
	}
	return err
}

// ask forecasts the change of a file's fabric, or of a controller's.
func (f *whatifFlags) ask(cmd *cobra.Command, args []string) (*whatif.Answer, error) {
	if len(args) == 0 {
		return f.askController(cmd)
	}
	for _, name := range []string{"server", "token", "ca", "scenario", "seed", "duration", "quiet", "fabric", "last", "flows"} {
		if cmd.Flags().Changed(name) {
			return nil, usagef("%s and --%s: want a file, or a controller", args[0], name)
		}
	}
	s, err := scenario.ReadFabric(args[0])
	if err != nil {
		return nil, err
	}
	change, err := f.change(s)
	if err != nil {
		return nil, err
	}
	return whatif.Ask(s, change)
}

func (f *whatifFlags) askController(cmd *cobra.Command) (*whatif.Answer, error) {
	t, err := f.open(cmd, "", live.StartOptions{})
	if err != nil {
		return nil, err
	}
	defer t.close()
	if err := t.finish(cmd.Context()); err != nil {
		return nil, err
	}
	if f.last == "" && !t.isScenario() {
		f.last = "10s"
	}
	r, err := (&rangeFlags{last: f.last}).parse(t)
	if err != nil {
		return nil, err
	}
	top, err := t.Topology(cmd.Context())
	if err != nil {
		return nil, t.explain(err)
	}
	s, err := served.Fabric(&top)
	if err != nil {
		return nil, err
	}
	if f.fabric != "" {
		routes, err := scenario.ReadFabric(f.fabric)
		if err != nil {
			return nil, err
		}
		if !served.Configure(s, routes) {
			return nil, usagef("--fabric %s: nodes, addresses or links differ from those of the controller", f.fabric)
		}
	}
	change, err := f.change(s)
	if err != nil {
		return nil, err
	}
	traffic, err := served.ReadTraffic(cmd.Context(), t, s.Topology.Fabric, r, f.flows)
	if err != nil {
		return nil, t.explain(err)
	}
	return whatif.AskLive(s, traffic, change)
}

// change finds what the flags name.
func (f *whatifFlags) change(s *scenario.Scenario) (whatif.Change, error) {
	c := whatif.Change{Jobs: f.jobs}
	for _, name := range f.fail {
		p, err := s.Port(name)
		if err != nil {
			return c, usagef("--fail %s: %w", name, err)
		}
		c.Links = append(c.Links, s.Topology.Fabric.Port(p).Link)
	}
	for _, name := range f.drain {
		id, ok := s.Topology.Fabric.ByName(name)
		if !ok {
			return c, usagef("--drain %s: no such node, want one of the topology", name)
		}
		c.Drain = append(c.Drain, id)
	}
	return c, nil
}

func printWhatif(w io.Writer, a *whatif.Answer, top int) error {
	var states table
	states.row(a.Fabric, "before", "after")
	b, n := &a.Before, &a.After
	states.row("flows", fmt.Sprint(b.Flows), fmt.Sprint(n.Flows))
	states.row("flows without a path", fmt.Sprint(b.NoPath), fmt.Sprint(n.NoPath))
	states.row("mean slowdown", slowdown(b.MeanSlowdown), slowdown(n.MeanSlowdown))
	states.row("highest slowdown", slowdown(b.MaxSlowdown), slowdown(n.MaxSlowdown))
	states.row("full links", fmt.Sprint(b.FullLinks), fmt.Sprint(n.FullLinks))
	for _, j := range a.Jobs {
		states.row("slowdown of "+j.Name, slowdown(j.Before), slowdown(j.After))
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
	if a.Live != nil {
		printLiveTraffic(w, a.Live)
	}
	return nil
}

// slowdown formats a slowdown; 0 is that of no flow.
func slowdown(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

// printLiveTraffic says what the forecast of a controller's traffic rests on.
func printLiveTraffic(w io.Writer, t *served.Traffic) {
	if t.Flows == 0 && t.Outside == 0 {
		fmt.Fprintln(w, "the controller counted no flows in this range: no load is forecast")
		return
	}
	fmt.Fprintf(w, "traffic: %s with %s of all bytes in %v; the paths of %d are recorded, the others take the intended routes\n",
		plural.Count(t.Flows, "flow"), model.FormatShare(t.Share), t.To.Sub(t.From).Round(time.Microsecond), t.OnRecord)
	if t.Outside > 0 {
		fmt.Fprintf(w, "%s with an end outside the topology not in it\n", plural.Count(t.Outside, "flow"))
	}
	if t.Truncated {
		fmt.Fprintln(w, "smaller flows are not in it; --flows asks for more")
	}
}
