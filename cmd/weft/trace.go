package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/control/tracepcap"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/traces"
	"github.com/weft-telemetry/weft/topo"
)

// forever is after every instant.
const forever = model.Time(math.MaxInt64)

// traceFlags are the flags of weft trace.
type traceFlags struct {
	runFlags
	captured capturedFlags
	asked    tracesAsked
	filter   string
	fields   []string
	span     spanFlags
	close    time.Duration
	top      int
	show     int
	pcapng   string
}

func (a *app) traceCommand() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace [FILE]",
		Short: "The way of packets, hop by hop, by mirrors of the switches",
		Long: `Play a scenario whose switches mirror packets (telemetry of kind mirror), put the
mirrors of each packet together, and show their ways: which switches a packet
passed, when, and what became of it. Nothing of the simulator's own knowledge
is used.

With --pcap the mirrors come from a capture file instead: ERSPAN of types I, II
and III, or SONiC's with padding. A topology tells where packets should go; in
its absence nobody can say that one is missing.

Without --filter those are shown that a controller would keep: packets that were
lost or went round, marked ones, and those of the network's own protocols. The
language of filters is in docs/filters.md.

Without FILE and --pcap a controller is asked (--server) for the traces it has
kept; --id shows one of them, and writes it to a file with --pcapng.

The exit code is 3 where a place is to blame for lost packets, or there is a
loop.`,
		Example: `  weft trace examples/trace.yaml
  weft trace examples/trace.yaml --filter 'trace.loop && ip.src == h5' --show 1
  weft trace examples/trace.yaml --filter 'hop.switch == leaf0' --fields ip.src,ip.dst,trace.latency
  weft trace examples/trace.yaml --filter trace.drop --pcapng lost.pcapng
  weft trace --pcap mirrors.pcapng --topology fabric.yaml
  weft trace --last 10m --end short --server http://127.0.0.1:8080
  weft trace --id 1234567890 --pcapng one.pcapng`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.captured.pcap != "" && len(args) > 0 {
				return fmt.Errorf("%s and --pcap %s: want one of them", args[0], f.captured.pcap)
			}
			return argumentCount(0, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.filter, "filter", "", "traces to show, such as 'trace.drop && ip.src == h0'; '' shows all")
	fl.StringSliceVar(&f.fields, "fields", nil, "fields to show of each, instead of the usual columns")
	fl.DurationVar(&f.close, "close", 0, "a trace is complete so long after its last mirror (default 1ms in a run, 1s of captured packets)")
	fl.IntVar(&f.top, "top", 20, "how many traces to show at most; 0 means all")
	fl.IntVar(&f.show, "show", 0, "show the hops of this trace, by its number in the table")
	fl.StringVar(&f.pcapng, "pcapng", "", "write the traces to this file, with a comment on each hop")
	f.runFlags.add(cmd)
	f.captured.add(cmd)
	f.span.add(cmd)
	f.asked.add(cmd)
	return cmd
}

func (f *traceFlags) run(a *app, cmd *cobra.Command, args []string) error {
	if f.show < 0 {
		return usagef("--show %d, want 0 or more", f.show)
	}
	if asked, err := f.asked.wanted(cmd, f.captured.pcap+strings.Join(args, ""), "fields", "close", "seed", "duration", "quiet", "topology", "pad", "debug-mark"); err != nil {
		return err
	} else if asked {
		return f.ask(a, cmd)
	}
	if err := serverOnly(cmd, f.asked.own()...); err != nil {
		return err
	}
	from, until, err := f.span.ofRun()
	switch {
	case err != nil:
		return err
	case f.close < 0:
		return usagef("--close %v, want more than 0", f.close)
	case f.top < 0:
		return usagef("--top %d, want 0 or more", f.top)
	case f.captured.topo != "" && f.captured.pcap == "":
		return usagef("--topology is for --pcap; a scenario has its own topology")
	}
	if err := checkWritable("pcapng", f.pcapng); err != nil {
		return err
	}
	all := cmd.Flags().Changed("filter")
	check := func(w *tracewatch.Watch) error {
		_, err := w.GetTrace(f.filter, 0, 0, f.fields...)
		return err
	}
	var w *tracewatch.Watch
	var fabric *topo.Fabric
	var note string
	if f.captured.pcap != "" {
		if w, fabric, note, err = f.captured.play(f.close, all, check); err != nil {
			return filterUsage(err)
		}
	} else {
		p, err := f.play(cmd, args, traces.Options{Close: f.close, All: all, Memory: 512 * model.MiB, Check: check})
		if err != nil {
			return err
		}
		w, fabric = p.Watch, p.Fabric()
	}
	to := model.Time(until)
	if to == 0 {
		to = forever
	}
	got, err := w.GetTrace(f.filter, model.Time(from), to, f.fields...)
	if err != nil {
		return filterUsage(err)
	}
	if f.show > 0 && len(got.Traces) == 0 {
		return usagef("--show %d: the filter chooses no trace", f.show)
	}
	if f.show > len(got.Traces) {
		return usagef("--show %d, want at most %d, as many as there are", f.show, len(got.Traces))
	}
	if f.pcapng != "" {
		if err := writeTraces(f.pcapng, f.filter, got, fabric); err != nil {
			return err
		}
	}
	v := newTraceView(w, fabric, got, f.top)
	v.Note = note
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), v)
	} else {
		err = f.print(cmd.OutOrStdout(), v)
	}
	if err == nil && len(v.Findings) > 0 {
		err = errFault
	}
	return err
}

// play runs the scenario of a file.
func (f *runFlags) play(cmd *cobra.Command, args []string, o traces.Options) (*traces.Played, error) {
	s, err := f.scenario(cmd, args)
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	bar := newProgressBar(cmd.ErrOrStderr(), f.quiet)
	p, err := traces.Play(ctx, s, o, bar.show)
	bar.clear()
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, filterUsage(err)
	}
	bar.done(p.Result)
	return p, nil
}

// filterUsage is an error of the command line, with a mark under what is wrong
// with a filter.
func filterUsage(err error) error {
	var e *filter.Error
	if errors.As(err, &e) {
		return usagef("%w\n%s", err, e.Underline())
	}
	return usageError{err}
}

func writeTraces(path, text string, got *tracewatch.Traces, f *topo.Fabric) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := tracepcap.NewWriter(file, "traces: "+text)
	for _, t := range got.Traces {
		r := t.Record(f)
		if err = w.Write(&r); err != nil {
			break
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if bad := file.Close(); err == nil {
		err = bad
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// print shows the table, and one trace if it was asked for or is the only one.
func (f *traceFlags) print(w io.Writer, v *traceView) error {
	if f.show == 0 {
		v.printSummary(w)
		if err := v.printFindings(w); err != nil {
			return err
		}
		if err := v.printTable(w); err != nil {
			return err
		}
		if v.Matched != 1 {
			return nil
		}
		f.show = 1
		fmt.Fprintln(w)
	}
	return v.printLadder(w, f.show)
}

func nodeName(f *topo.Fabric, id model.NodeID) string {
	if f.HasNode(id) {
		return f.Node(id).Name
	}
	return fmt.Sprintf("node %d", id)
}

// cut is the first n of a list; 0 means all.
func cut[T any](list []T, n int) []T {
	if n == 0 {
		return list
	}
	return slices.Clip(list[:min(n, len(list))])
}
