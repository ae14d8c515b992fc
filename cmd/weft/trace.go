package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario/live"
)

// traceFlags are the flags of weft trace.
type traceFlags struct {
	targetFlags
	timeRange rangeFlags
	query     api.TracesQuery
	id        string
	show      int
	pcapng    string
	close     time.Duration
	capture   captureFlags
	all       bool
	followed  bool
}

func (a *app) traceCommand() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace [FILE]",
		Short: "List packet traces: the path of packets, hop by hop, from mirrors",
		Long: `List packet traces. Switches mirror packets (telemetry of kind mirror); the mirrors
of each packet are assembled into its path: which switches it passed, when, and
where it was lost or looped. --id or --show prints one trace hop by hop. --pcapng
writes that trace to a file; without --id and --show it writes all matching traces of a
scenario or of --pcap, and those that a controller lists (--top).

A controller (--server) keeps traces of lost, looped and marked packets and of
network protocols (PFC, CNP, BGP). Those of protocols that were neither lost nor
looped are listed with --all, or where a filter, flow, node or fate is asked for.
docs/filters.md describes filters.

With FILE it runs that scenario in the simulator and lists its traces, and the
incidents that Weft found from the mirrors alone; with --filter it keeps every
trace.

With --pcap the mirrors come from a capture file: ERSPAN types I, II and III, or
SONiC's with padding. The topology says where packets should go; without it no drop
can be detected.

With FILE or --pcap the exit code is 3 if packets were dropped at a known location,
or looped.`,
		Example: `  weft trace --last 10m --end lost --server http://127.0.0.1:8080
  weft trace --follow --end lost
  weft trace --id 1234567890 --pcapng one.pcapng
  weft trace examples/trace.yaml
  weft trace examples/trace.yaml --filter 'trace.loop && ip.src == h5' --show 1
  weft trace examples/trace.yaml --filter 'hop.switch == leaf0' --fields ip.src,ip.dst,trace.latency
  weft trace examples/trace.yaml --filter trace.drop --pcapng lost.pcapng
  weft trace --pcap mirrors.pcapng --topology fabric.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.capture.pcap != "" && len(args) > 0 {
				return fmt.Errorf("%s and --pcap %s: want one of them", args[0], f.capture.pcap)
			}
			return argumentCount(0, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, strings.Join(args, "")) },
	}
	f.register(cmd)
	f.timeRange.register(cmd)
	f.capture.register(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.query.Filter, "filter", "", "only traces that match, e.g. 'trace.drop && ip.src == h0'")
	fl.BoolVar(&f.all, "all", false, "list packets of network protocols too: PFC, CNP, BGP")
	fl.StringVar(&f.query.Fields, "fields", "", "filter fields to print as columns, separated by commas")
	fl.StringVar(&f.query.Flow, "flow", "", "only traces of this flow, e.g. 'udp 10.0.0.2:10000 > 10.2.0.2:4791'")
	fl.StringVar(&f.query.Node, "node", "", "only packets through this node")
	fl.StringVar(&f.query.End, "end", "", "only packets with this fate: arrived, lost, looped, unsettled or unknown")
	knownValues(cmd, "end", "arrived", "lost", "looped", "unsettled", "unknown")
	fl.IntVar(&f.query.Limit, "top", 20, "maximum number of traces to list")
	fl.StringVar(&f.query.After, "after", "", afterHelp)
	fl.BoolVarP(&f.followed, "follow", "f", false, followHelp)
	fl.StringVar(&f.id, "id", "", "print the hops of the trace with this ID")
	fl.IntVar(&f.show, "show", 0, "print the hops of the Nth trace of the list")
	fl.StringVar(&f.pcapng, "pcapng", "",
		"write the traces, or that of --id or --show, to this file, with a comment on each hop")
	fl.DurationVar(&f.close, "close", 0,
		"a trace is complete this long after its last mirror (default in a scenario: as long as the longest\nqueue takes to drain, at least 1ms; with --pcap 1s)")
	return cmd
}

func (f *traceFlags) run(a *app, cmd *cobra.Command, file string) error {
	switch {
	case f.show < 0:
		return usagef("--show %d, want 0 or more", f.show)
	case f.close < 0:
		return usagef("--close %v, want more than 0", f.close)
	case f.capture.topo != "" && f.capture.pcap == "":
		return usagef("--topology needs --pcap; a scenario contains its topology")
	}
	if err := errors.Join(checkPagedTop(f.query.Limit), checkWritable("pcapng", f.pcapng)); err != nil {
		return err
	}
	if f.capture.pcap != "" {
		return f.runCapture(a, cmd)
	}
	t, err := f.open(cmd, file, live.StartOptions{
		Need: "mirror", TraceClose: f.close, KeepAllTraces: cmd.Flags().Changed("filter"),
	})
	if err != nil {
		return err
	}
	defer t.close()
	if f.query.Range, err = f.timeRange.parse(t); err != nil {
		return err
	}
	if q := &f.query; !f.all && !t.isScenario() && q.Filter == "" && q.End == "" && q.Flow == "" && q.Node == "" {
		q.Filter = "!trace.protocol || trace.drop || trace.loop"
	}
	if err := f.checkQuery(cmd, t); err != nil {
		return err
	}
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	if f.followed {
		if f.id != "" || f.show > 0 || f.pcapng != "" || f.query.After != "" || f.timeRange != (rangeFlags{}) {
			return usagef("--follow is about now: want --filter, --end, --node and no range, --id, --show or --pcapng")
		}
		return f.follow(a, cmd, t)
	}
	list := traceList{}
	if list.Incidents, err = t.runIncidents(cmd.Context()); err != nil {
		return err
	}
	if err := f.printTraces(a, cmd, t, &list); err != nil {
		return err
	}
	return faultIf(list.Incidents, "loop", "blackhole", "loss")
}

// checkQuery finds errors in the query before a scenario runs.
func (f *traceFlags) checkQuery(cmd *cobra.Command, t *target) error {
	if !t.isScenario() {
		return nil
	}
	q := f.query
	q.Range = api.Range{} // at the start of the run the range is empty
	_, err := t.Traces(cmd.Context(), q)
	return t.explainFilter(cmd.Context(), err, "traces", f.query.Filter)
}

// traceList is a page of traces and, of a scenario, the incidents of its run.
type traceList struct {
	api.Page[api.TraceSummary]
	Incidents []api.Incident `json:"incidents,omitempty"`
}

// printTraces prints the list, or one trace of it.
func (f *traceFlags) printTraces(a *app, cmd *cobra.Command, t *target, list *traceList) (err error) {
	out := cmd.OutOrStdout()
	if f.id == "" {
		if list.Page, err = t.matchingTraces(cmd.Context(), f.query); err != nil {
			return t.explainFilter(cmd.Context(), err, "traces", f.query.Filter)
		}
		switch {
		case f.show > 0 && len(list.Items) == 0:
			return usagef("--show %d: no trace matches", f.show)
		case f.show > len(list.Items):
			return usagef("--show %d, want at most %d, the number of traces", f.show, len(list.Items))
		case f.show > 0:
			f.id = list.Items[f.show-1].ID
		default:
			return f.printList(a, cmd, t, list)
		}
	}
	one, err := t.Trace(cmd.Context(), f.id)
	if err != nil {
		return t.explain(err)
	}
	if f.pcapng != "" {
		b, err := t.TracePcapng(cmd.Context(), f.id)
		if err != nil {
			return t.explain(err)
		}
		if err := os.WriteFile(f.pcapng, b, 0o666); err != nil {
			return err
		}
	}
	if a.format == "json" {
		return printJSON(out, one)
	}
	return printTrace(out, t, &one)
}

// printList prints the list, and writes its traces to --pcapng.
func (f *traceFlags) printList(a *app, cmd *cobra.Command, t *target, list *traceList) error {
	if f.pcapng != "" {
		if err := t.writePcapng(cmd.Context(), f.pcapng, f.query, list.Page); err != nil {
			return err
		}
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), list)
	}
	return f.printTraceList(cmd.OutOrStdout(), t, list)
}

// maxPages bounds the pages that one command reads: a filter that matches little
// makes them short.
const maxPages = 100

// matchingTraces reads pages until there are as many traces as the query wants.
func (t *target) matchingTraces(ctx context.Context, q api.TracesQuery) (all api.Page[api.TraceSummary], err error) {
	want := q.Limit
	q.Limit = min(want, maxTop)
	all.Items = []api.TraceSummary{} // JSON without matches has an empty list
	for range maxPages {
		page, err := t.Traces(ctx, q)
		if err != nil {
			return all, err
		}
		all.Items, all.Next, all.Scanned = append(all.Items, page.Items...), page.Next, all.Scanned+page.Scanned
		all.Omitted += page.Omitted
		if q.After, q.Limit = page.Next, min(want-len(all.Items), maxTop); page.Next == "" || q.Limit <= 0 {
			break
		}
	}
	return all, nil
}

// explainFilter is explain for a query with a filter of some records: it also
// marks the error in the filter's text.
func (t *target) explainFilter(ctx context.Context, err error, records, text string) error {
	if err == nil || text == "" {
		return t.explain(err)
	}
	check, failed := t.CompleteFilter(ctx, records, text, -1)
	if failed != nil || check.Valid || check.Error == nil {
		return t.explain(err)
	}
	wrong := filter.Error{Text: text, At: check.Error.At, End: check.Error.End}
	return usagef("%s\n%s", check.Error.Message, wrong.Underline())
}
