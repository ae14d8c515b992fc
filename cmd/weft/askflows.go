package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// flowsAsked is weft flows of a controller.
type flowsAsked struct {
	serverFlags
	span spanFlags
	q    api.FlowsQuery
}

func (f *flowsAsked) add(cmd *cobra.Command) {
	f.serverFlags.add(cmd)
	f.span.addOfRecords(cmd, "of a controller: ")
	fl := cmd.Flags()
	fl.StringVar(&f.q.Filter, "filter", "", "of a controller: flows to show, such as 'ip.src == 10.0.0.0/24' (docs/filters.md)")
	fl.StringVar(&f.q.Node, "node", "", "of a controller: flows that passed a node")
	fl.StringVar(&f.q.Sort, "sort", "bytes", "of a controller: by bytes, packets, lost or newest")
	fl.StringVar(&f.q.After, "after", "", "of a controller: go on behind an earlier answer")
}

// own are the flags that scenarios do not know.
func (f *flowsAsked) own() []string {
	return []string{"filter", "node", "sort", "after", "last", "from", "to"}
}

func (f *flowsAsked) run(a *app, cmd *cobra.Command, key model.FlowKey, top int) error {
	c, err := f.client()
	if err := errors.Join(err, checkTop(top)); err != nil {
		return err
	}
	if f.q.Range, err = f.span.ofRecords(); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if !key.IsZero() {
		d, err := c.Flow(cmd.Context(), key, f.q.Range)
		if err != nil {
			return f.advice(err)
		}
		if a.format == "json" {
			return printJSON(out, d)
		}
		return printFlow(out, &d)
	}
	f.q.Limit = top
	page, err := c.Flows(cmd.Context(), f.q)
	if err != nil {
		return f.advice(err)
	}
	if a.format == "json" {
		return printJSON(out, page)
	}
	return printFlowPage(out, &page)
}

func printFlowPage(w io.Writer, p *api.FlowPage) error {
	fmt.Fprintf(w, "from %s to %s\n", clock(p.CoveredFrom), clock(p.CoveredTo))
	if len(p.Items) == 0 {
		_, err := fmt.Fprintln(w, "no flows")
		return err
	}
	var t table
	t.row("FLOW", "HOSTS", "PACKETS", "BYTES", "RATE", "LOST", "WAY", "")
	for i := range p.Items {
		f := &p.Items[i]
		t.row(f.Flow, dash(endpoints(f.FlowRef)), f.Packets, model.Bytes(f.Bytes), model.Rate(f.RateBps), f.LostPackets, strings.Join(f.Path, " > "), doubt(f.Exact))
	}
	if err := t.print(w); err != nil {
		return err
	}
	if p.Omitted > 0 {
		fmt.Fprintf(w, "%d more flows of this span are left out; --top shows more\n", p.Omitted)
	}
	more(w, p.Next)
	return nil
}

// doubt marks counts that were not decoded to the last packet.
func doubt(exact bool) string {
	if exact {
		return ""
	}
	return "estimated"
}

// printFlow shows one flow, hop by hop.
func printFlow(w io.Writer, d *api.FlowDetail) error {
	fmt.Fprintf(w, "%v  %s\n%s to %s: %d packets, %v, %v; %d lost\n", d.Flow.Flow, endpoints(d.FlowRef),
		clock(d.First), clock(d.Last), d.Packets, model.Bytes(d.Bytes), model.Rate(d.RateBps), d.LostPackets)
	if !d.Complete {
		fmt.Fprintln(w, "not all of the span is here: a shorter one has more")
	}
	fmt.Fprintln(w)
	var hops table
	hops.row("HOP", "SWITCH", "OUT", "PACKETS", "LOST BEHIND", "LATENCY", "QUEUE", "PAUSED")
	for i := range d.Hops {
		h := &d.Hops[i]
		out, latency, queue, paused := "-", "-", "-", "-"
		if h.Out != nil {
			out = port(*h.Out)
		}
		if h.LatencyNs != nil {
			latency = time.Duration(*h.LatencyNs).String()
		}
		if h.QueueBytes != nil {
			queue = model.Bytes(*h.QueueBytes).String()
		}
		if h.PausedShare != nil {
			paused = percent(*h.PausedShare)
		}
		hops.row(i+1, h.Switch, out, h.Packets, h.LostPackets, latency, queue, paused)
	}
	if err := hops.print(w); err != nil {
		return err
	}
	if len(d.Losses) > 0 {
		fmt.Fprintln(w, "\nlosses")
		var t table
		t.row("TIME", "FROM", "TO", "LOST", "SENT", "PATTERN")
		for _, l := range d.Losses {
			t.row(clock(l.Time), l.From, dash(l.To), l.Packets, l.Sent, l.Pattern)
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	if len(d.Traces) > 0 {
		fmt.Fprintln(w, "\ntraces")
		if err := printTraceRows(w, summaryRows(d.Traces)); err != nil {
			return err
		}
	}
	if len(d.Diagnoses) > 0 {
		fmt.Fprintln(w, "\ndiagnoses")
		return printDiagnosisRows(w, d.Diagnoses)
	}
	return nil
}
