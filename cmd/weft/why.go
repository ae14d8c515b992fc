package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/why"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/scenario/live"
)

// whyFlags are the flags of weft why.
type whyFlags struct {
	targetFlags
	timeRange rangeFlags
	host      bool
	over      time.Duration
	drops     bool
}

func (a *app) whyCommand() *cobra.Command {
	var f whyFlags
	cmd := &cobra.Command{
		Use:   "why FLOW|HOST … | --host",
		Short: "Say why a flow or a host is slow, with evidence",
		Long: `Say why a flow or a host is slow, from everything that a controller knows: incidents
that involve it, diagnoses with their account of time, losses by place, and the ports
of its path. Evidence follows every cause; what is not known is said, too.

FLOW is a 5-tuple, or two hosts for all flows between them; HOST is the name of a host.
weft diagnose asks the switches for more, weft flows --flow shows all counters.

With --host it asks no controller but the kernel of this Linux machine: whether it is
this host, its NIC, the cable, congestion or a peer that makes flows slow, by what its
counters show within --for.

The exit code is 3 if a cause was found.`,
		Example: `  weft why 'udp 10.0.0.2:10000 > 10.2.0.2:4791'
  weft why 'h0>h9' --last 10m
  weft why h5 h7 -o json
  weft why h2 --scenario examples/flow-faults.yaml
  weft why --host --for 10s`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	f.register(cmd)
	f.timeRange.register(cmd)
	cmd.Flags().BoolVar(&f.host, "host", false, "ask this machine's own counters")
	cmd.Flags().DurationVar(&f.over, "for", 2*time.Second, "with --host: how long to watch")
	cmd.Flags().BoolVar(&f.drops, "drops", false, dropsHelp)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if f.host {
			return argumentCount(0, 0)(cmd, args)
		}
		return argumentCount(1, -1)(cmd, args)
	}
	return cmd
}

func (f *whyFlags) run(a *app, cmd *cobra.Command, args []string) error {
	if f.over < 10*time.Millisecond {
		return usagef("--for %v, want at least 10ms", f.over)
	}
	if f.host {
		return a.whyHost(cmd.Context(), cmd.OutOrStdout(), f.over, f.drops)
	}
	t, err := f.open(cmd, "", live.StartOptions{})
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	r, err := f.timeRange.parse(t)
	if err != nil {
		return err
	}
	answers := []why.Answer{}
	for _, subject := range args {
		list, err := t.answers(cmd.Context(), subject, r)
		if err != nil {
			return t.explain(err)
		}
		answers = append(answers, list...)
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), answers)
	} else {
		for i := range answers {
			if i > 0 {
				fmt.Fprintln(cmd.OutOrStdout())
			}
			printAnswer(cmd.OutOrStdout(), &answers[i])
		}
	}
	for i := range answers {
		if err == nil && len(answers[i].Causes) > 0 {
			err = errFault
		}
	}
	return err
}

// answers answers why a host, or each flow that is named, is slow.
func (t *target) answers(ctx context.Context, subject string, r api.Range) (list []why.Answer, err error) {
	ask := why.Asker{Source: t, Range: r, Clock: t.clock}
	if !strings.Contains(subject, ">") {
		topology, err := t.Topology(ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range topology.Nodes {
			if n.Name == subject && n.Role == "host" {
				answer, err := ask.Host(ctx, subject)
				return []why.Answer{answer}, err
			}
		}
		return nil, usagef("%q is no host of the fabric, want one, or a flow such as 'h0>h9' or 'udp 10.0.0.2:10000 > 10.2.0.2:4791'", subject)
	}
	keys, err := t.flowsNamed(ctx, subject, r)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		answer, err := ask.Flow(ctx, key)
		if err != nil {
			return nil, err
		}
		list = append(list, answer)
	}
	return list, nil
}

// printAnswer prints an answer as sentences.
func printAnswer(w io.Writer, a *why.Answer) {
	fmt.Fprint(w, a.Subject)
	if a.Hosts != "" {
		fmt.Fprintf(w, "  %s", a.Hosts)
	}
	if len(a.Causes) == 0 {
		fmt.Fprintln(w, ": no cause found")
	} else {
		fmt.Fprintf(w, ": %s found\n", plural.Count(len(a.Causes), "cause"))
	}
	for i := range a.Causes {
		c := &a.Causes[i]
		fmt.Fprintf(w, "\n%d. %s\n", i+1, c.Text)
		for _, e := range c.Evidence {
			fmt.Fprintf(w, "   - %s\n", e)
		}
		if c.Remedy != "" {
			fmt.Fprintf(w, "   action: %s\n", c.Remedy)
		}
		switch c.Kind {
		case why.Involved, why.OnPath:
			fmt.Fprintf(w, "   more: weft incidents %s\n", c.ID)
		case why.Verdict:
			fmt.Fprintf(w, "   more: weft diagnose --id %s\n", c.ID)
		}
	}
	for _, section := range []struct {
		title string
		lines []string
	}{{"known", a.Facts}, {"not known", a.Unknown}} {
		if len(section.lines) > 0 {
			fmt.Fprintf(w, "\n%s\n", section.title)
		}
		for _, line := range section.lines {
			fmt.Fprintf(w, "   - %s\n", line)
		}
	}
}
