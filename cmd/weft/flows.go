package main

import (
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/flowlog"
	"github.com/weft-telemetry/weft/topo"
)

// flowsFlags are those of weft flows.
type flowsFlags struct {
	runFlags
	asked flowsAsked
	top   int
	flow  string
}

func (a *app) flowsCommand() *cobra.Command {
	var f flowsFlags
	cmd := &cobra.Command{
		Use:   "flows [FILE]",
		Short: "Flows by the switches' flowsets: ways, losses, load",
		Long: `Play a scenario whose switches count flows (telemetry of kind flowset) and tell
what their reports say: loops, black holes and wrong ways, losses by link,
equal-cost ports that are used unevenly, bursts, and the largest flows. Nothing
of the simulator's own knowledge is used.

Without FILE a controller is asked (--server): for the flows of a span of time
that a filter chooses, or with --flow for one of them, hop by hop.

With --flow it shows the way of one flow in every slot, with the packets that
each switch counted.

The exit code is 3 where a loop, a black hole or a wrong way is certain.`,
		Example: `  weft flows examples/flow-faults.yaml
  weft flows examples/flow-faults.yaml --flow 'udp 10.0.0.2:10000 > 10.0.1.2:9'
  weft flows examples/flowset.yaml -o json --top 20
  weft flows --last 1m --filter 'ip.src == 10.0.0.0/24' --sort lost
  weft flows --flow 'udp 10.0.0.2:10000 > 10.2.0.2:4791' --server https://weft.example:8443`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	f.runFlags.add(cmd)
	f.asked.add(cmd)
	cmd.Flags().IntVar(&f.top, "top", 10, "how many of the largest flows to show")
	cmd.Flags().StringVar(&f.flow, "flow", "", "show the way of this flow, as in 'udp 10.0.0.2:10000 > 10.2.0.2:4791'")
	return cmd
}

func (f *flowsFlags) run(a *app, cmd *cobra.Command, args []string) error {
	var key model.FlowKey
	if f.flow != "" {
		var err error
		if key, err = model.ParseFlowKey(f.flow); err != nil {
			return usagef("--flow: %w", err)
		}
	}
	if asked, err := f.asked.wanted(cmd, strings.Join(args, ""), "seed", "duration", "quiet"); err != nil {
		return err
	} else if asked {
		return f.asked.run(a, cmd, key, f.top)
	}
	if err := serverOnly(cmd, f.asked.own()...); err != nil {
		return err
	}
	if f.top < 0 {
		return usagef("--top %d, want 0 or more", f.top)
	}
	watch, slots, intent, err := f.play(cmd, args)
	if err != nil {
		return err
	}
	if f.flow != "" {
		return a.printWays(cmd.OutOrStdout(), flowlog.Ways(slots, key, intent), key)
	}
	sum := flowlog.Summarize(watch, slots, intent, f.top)
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), sum)
	} else {
		err = printFlows(cmd.OutOrStdout(), sum)
	}
	if err == nil && sum.Faulty() {
		err = errFault
	}
	return err
}

// play runs the scenario of a file and decodes its flowsets.
func (f *flowsFlags) play(cmd *cobra.Command, args []string) (*flowwatch.Watch, []*flowwatch.Slot, *topo.Intent, error) {
	s, err := f.scenario(cmd, args)
	if err != nil {
		return nil, nil, nil, err
	}
	log, err := flowlog.New(s)
	if err != nil {
		return nil, nil, nil, usageError{err}
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	bar := newProgressBar(cmd.ErrOrStderr(), f.quiet)
	r, err := scenario.Run(ctx, s, scenario.Options{Sink: log.Take}, bar.show)
	bar.clear()
	if err != nil {
		return nil, nil, nil, err
	}
	watch, slots, err := log.Play(r.Intent)
	return watch, slots, r.Intent, err
}

func (a *app) printWays(w io.Writer, ways []flowlog.Way, key model.FlowKey) error {
	if a.format == "json" {
		return printJSON(w, map[string]any{"flow": key, "ways": ways})
	}
	if len(ways) == 0 {
		_, err := fmt.Fprintf(w, "no switch counted %v\n", key)
		return err
	}
	var t table
	t.row("SLOT", "WAY: SWITCH(PACKETS)")
	for _, way := range ways {
		var b strings.Builder
		for i, h := range way.Hops {
			if i > 0 {
				b.WriteString(" > ")
			}
			fmt.Fprintf(&b, "%s(%d)", h.Switch, h.Packets)
		}
		if len(way.Loop) > 0 {
			fmt.Fprintf(&b, "  loop: %s", strings.Join(way.Loop, " > "))
		}
		t.row(way.Slot, b.String())
	}
	return t.print(w)
}

func printFlows(w io.Writer, s *flowlog.Summary) error {
	fmt.Fprintf(w, "%s in %s of %v; %s, %d of them decoded to the last packet, %d damaged\n",
		plural.Count(s.Flows, "flow"), plural.Count(s.Slots, "slot"), s.Slot, plural.Count(s.Flowsets, "flowset"), s.Complete, s.Lost)
	section := func(title string, n int, fill func(t *table)) error {
		if n == 0 {
			_, err := fmt.Fprintf(w, "\n%s: none\n", title)
			return err
		}
		fmt.Fprintf(w, "\n%s\n", title)
		var t table
		fill(&t)
		return t.print(w)
	}
	err := section("wrong ways", len(s.Findings), func(t *table) {
		t.row("FINDING", "AT", "TOWARDS", "SLOTS", "FLOWS", "WELL", "")
		for _, f := range s.Findings {
			at, sure := f.At, ""
			if len(f.Switches) > 0 {
				at = strings.Join(f.Switches, " > ")
			}
			if !f.Sure {
				sure = "perhaps"
			}
			t.row(f.Kind, at, dash(f.Next), span(f.First, f.Last), len(f.Flows), f.Others, sure)
		}
	})
	if err == nil {
		err = section("losses", len(s.Losses), func(t *table) {
			t.row("FROM", "TO", "LOST", "SENT", "FLOWS", "PATTERN")
			for _, l := range s.Losses {
				t.row(l.From, dash(l.To), l.Packets, l.Sent, len(l.Flows), l.Pattern)
			}
		})
	}
	if err == nil {
		err = section("uneven equal-cost ports", len(s.Imbalances), func(t *table) {
			t.row("SWITCH", "BUSIEST/MEAN", "CAUSE", "FLOWS BY PORT")
			for _, im := range s.Imbalances {
				t.row(im.Switch, fmt.Sprintf("%.2f", im.Ratio), im.Cause, strings.Trim(fmt.Sprint(im.Flows), "[]"))
			}
		})
	}
	if err == nil {
		err = section("bursts", len(s.Bursts)+len(s.Rhythms), func(t *table) {
			t.row("PORT", "SLOTS", "LOAD", "FLOWS", "NEW")
			for _, b := range s.Bursts {
				t.row(b.Port, span(b.Slot, b.Slot+b.Slots-1), fmt.Sprintf("%.0f%%", 100*b.Load), len(b.Flows), b.New)
			}
			for _, r := range s.Rhythms {
				t.row(r.Port, fmt.Sprintf("every %v", r.Period), fmt.Sprintf("%.1f%%", 100*r.Mean), "from "+r.Source, fmt.Sprintf("%d bursts", r.Bursts))
			}
		})
	}
	if err == nil {
		err = section("largest flows", len(s.Top), func(t *table) {
			t.row("FLOW", "PACKETS", "BYTES", "")
			for _, f := range s.Top {
				doubt := ""
				if !f.Exact {
					doubt = "estimated"
				}
				t.row(f.Flow, f.Packets, f.Bytes, doubt)
			}
		})
	}
	return err
}

func span(first, last int64) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
