package main

import (
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/scenario/probes"
)

// probeFlags are the questions of weft probe.
type probeFlags struct {
	runFlags
	asked probeAsked
	probes.Options
}

func (a *app) probeCommand() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe [FILE]",
		Short: "Send guided probes: what is lost and how, round trips of links",
		Long: `Play a scenario whose switches mirror packets (telemetry of kind mirror) and have
hosts send marked packets into it, which every switch mirrors. Their traces tell:

  --flow      what becomes of a flow's packets: do they pass, are all lost, some at
              random, or certain 5-tuples; where; with the statistics
  --suspects  the same of flows whose packets were seen to end short before
  --link      the round trip of a link, by one switch's clock
  --format    the ways of packets of your own making, with lists for tunnels

Nothing of the simulator's own knowledge is used.

Without FILE a controller (--server) has its hosts send them, and its answer is
waited for: --flow of one flow, with --way for its way alone, or --link; without
either, the probes that it has sent are listed.

The exit code is 3 where packets are lost or go round.`,
		Example: `  weft probe examples/traced-blackhole.yaml --suspects 2
  weft probe examples/trace.yaml --flow 'h1>h14' --at 1500us --count 10
  weft probe examples/traced-slow-link.yaml --link 'leaf0>spine1' --link 'leaf0>spine0' --count 500
  weft probe examples/traced-drop.yaml --format 'ip.src == h0,h0 && ip.dst == spine1,h15 && tcp.dstport == 80' --count 10
  weft probe --flow 'udp 10.0.0.2:10000 > 10.2.0.2:4791' --server http://127.0.0.1:8080
  weft probe --link 'leaf0>spine1' --count 100`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.Flows, "flow", nil, "flow to ask about: a 5-tuple, or two hosts such as h0>h9; may be repeated")
	fl.IntVar(&f.Suspects, "suspects", 0, "ask about so many flows whose traces ended short")
	fl.StringVar(&f.Inject, "inject", "", "switch at which a flow's probes begin; left out: the first of its way")
	fl.StringArrayVar(&f.Links, "link", nil, "link to measure, such as leaf0>spine1; may be repeated")
	fl.StringVar(&f.Format, "format", "", "probes of your own, such as 'ip.src == h0 && ip.dst == h9 && udp.dstport == 9'")
	fl.DurationVar(&f.At, "at", 0, "when to ask; 0 means when half of the run is over")
	fl.DurationVar(&f.Interval, "interval", 20*time.Microsecond, "between two probes")
	fl.Uint32Var(&f.Count, "count", 20, "probes of each pattern of a flow, of a link, of a format")
	f.runFlags.add(cmd)
	f.asked.add(cmd)
	return cmd
}

func (f *probeFlags) run(a *app, cmd *cobra.Command, args []string) error {
	if asked, err := f.asked.wanted(cmd, strings.Join(args, ""), "suspects", "format", "at", "seed", "duration", "quiet"); err != nil {
		return err
	} else if asked {
		return f.ask(a, cmd)
	}
	if err := serverOnly(cmd, f.asked.own()...); err != nil {
		return err
	}
	if err := f.Check(); err != nil {
		return usageError{err}
	}
	s, err := f.scenario(cmd, args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	bar := newProgressBar(cmd.ErrOrStderr(), f.quiet)
	p, err := probes.Play(ctx, s, f.Options, bar.show)
	bar.clear()
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return filterUsage(usageError{err})
	}
	v := newProbeView(p)
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), v)
	} else {
		err = v.print(cmd.OutOrStdout())
	}
	if err == nil && v.faulty() {
		return errFault
	}
	return err
}
