package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/inhost/marker"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/traces"
)

// debugFlags are the flags of weft debug.
type debugFlags struct {
	runFlags
	asked   marksAsked
	filter  string
	servers []string
	top     int
	pcapng  string
}

func (a *app) debugCommand() *cobra.Command {
	var f debugFlags
	cmd := &cobra.Command{
		Use:   "debug [FILE]",
		Short: "Mark packets at their senders, and follow each of them",
		Long: `Play a scenario whose switches mirror packets (telemetry of kind mirror) while
servers set the debug mark on packets that a filter chooses. Every switch on
their way mirrors a marked packet, whatever its sample is, so each of them is
traced whole. Shown are what was marked and what became of it.

Servers mark at most 1 Gb/s each; what they left alone for that is counted. The
filter is about headers (docs/filters.md).

Without FILE a controller (--server) has hosts mark packets for a while: those of
--filter, --flow or --host. Its marks are listed; weft trace shows what became of
marked packets.

The exit code is 3 where a place is to blame for lost packets, or there is a
loop.`,
		Example: `  weft debug examples/trace.yaml --servers h0,h1 --filter 'ip.dst == h7'
  weft debug examples/trace.yaml --filter tcp.flags.syn -o json
  weft debug --flow 'udp 10.0.0.2:10000 > 10.2.0.2:4791' --for 100ms --server http://127.0.0.1:8080`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.filter, "filter", "", "packets to mark; left out, all of them")
	fl.StringSliceVar(&f.servers, "servers", nil, "hosts that mark; left out, all of them")
	fl.IntVar(&f.top, "top", 20, "how many traces to show at most; 0 means all")
	fl.StringVar(&f.pcapng, "pcapng", "", "write the traces to this file, with a comment on each hop")
	f.runFlags.add(cmd)
	f.asked.add(cmd)
	return cmd
}

// debugView is what weft debug prints.
type debugView struct {
	Marks  []tracewatch.Mark `json:"marks"`
	Hosts  marker.Stats      `json:"hosts"`
	Traces *traceView        `json:"traces"`
}

func (f *debugFlags) run(a *app, cmd *cobra.Command, args []string) error {
	if asked, err := f.asked.wanted(cmd, strings.Join(args, ""), "servers", "pcapng", "seed", "duration", "quiet"); err != nil {
		return err
	} else if asked {
		return f.asked.run(a, cmd, f.filter)
	}
	if err := serverOnly(cmd, f.asked.own()...); err != nil {
		return err
	}
	if f.top < 0 {
		return usagef("--top %d, want 0 or more", f.top)
	}
	if err := checkWritable("pcapng", f.pcapng); err != nil {
		return err
	}
	p, err := f.play(cmd, args, traces.Options{Memory: 512 * model.MiB, Debug: []tracewatch.Mark{{Servers: f.servers, Filter: f.filter}}})
	if err != nil {
		return err
	}
	got, err := p.GetTrace("trace.debug", 0, forever)
	if err != nil {
		return err
	}
	if f.pcapng != "" {
		if err := writeTraces(f.pcapng, "marked: "+f.filter, got, p.Fabric()); err != nil {
			return err
		}
	}
	v := debugView{p.Marks(), p.Markers.Stats(), newTraceView(p.Watch, p.Fabric(), got, f.top)}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), v)
	} else {
		err = v.print(cmd.OutOrStdout())
	}
	if err == nil && len(v.Traces.Findings) > 0 {
		err = errFault
	}
	return err
}

func (v *debugView) print(w io.Writer) error {
	for _, m := range v.Marks {
		what := m.Filter
		if what == "" {
			what = "all packets"
		}
		fmt.Fprintf(w, "%s marking %s\n", plural.Count(len(m.Servers), "host"), what)
	}
	fmt.Fprintf(w, "%d of %d packets marked, %d left alone for want of budget\n", v.Hosts.Marked, v.Hosts.Seen, v.Hosts.RateLimited)
	v.Traces.printSummary(w)
	if err := v.Traces.printFindings(w); err != nil {
		return err
	}
	return v.Traces.printTable(w)
}
