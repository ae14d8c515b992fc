package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/model"
)

// probeAsked is what weft probe asks a controller.
type probeAsked struct {
	serverFlags
	id   string
	way  bool
	wait time.Duration
}

func (f *probeAsked) add(cmd *cobra.Command) {
	f.serverFlags.add(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.way, "way", false, "of a controller: with --flow, probes with the flow's own headers alone, for its way")
	fl.DurationVar(&f.wait, "wait", time.Minute, "of a controller: how long to wait for the answer")
	fl.StringVar(&f.id, "id", "", "of a controller: show what came of this probe")
}

// own are the flags that scenarios do not know.
func (f *probeAsked) own() []string { return []string{"way", "wait", "id"} }

// The API's bounds of a probe, too.
const (
	maxProbes        = 1000
	maxProbeInterval = time.Second
)

// ask is weft probe of a controller.
func (f *probeFlags) ask(a *app, cmd *cobra.Command) error {
	c, err := f.asked.client()
	if err != nil {
		return err
	}
	var r api.ProbeRequest
	switch {
	case f.Count < 1 || f.Count > maxProbes:
		return usagef("--count %d, want 1 to %d", f.Count, maxProbes)
	case f.Interval < time.Microsecond || f.Interval > maxProbeInterval:
		return usagef("--interval %v, want 1µs to %v", f.Interval, maxProbeInterval)
	case f.asked.wait < 0:
		return usagef("--wait %v, want 0 or more", f.asked.wait)
	case f.asked.id != "" && len(f.Flows)+len(f.Links) > 0 || len(f.Flows)+len(f.Links) > 1:
		return usagef("want one flow, one link, or one --id")
	case f.asked.id != "":
		p, err := c.Probe(cmd.Context(), f.asked.id)
		if err != nil {
			return f.asked.advice(err)
		}
		return a.printProbe(cmd.OutOrStdout(), &p)
	case len(f.Flows) == 1:
		r.Kind, r.At = "pattern", f.Inject
		if f.asked.way {
			r.Kind = "flow"
		}
		if r.Flow, err = model.ParseFlowKey(f.Flows[0]); err != nil {
			return usagef("--flow %q: %w", f.Flows[0], err)
		}
	case len(f.Links) == 1:
		ref, err := resolvePort(cmd.Context(), c, f.Links[0])
		if err != nil {
			return f.asked.advice(err)
		}
		r.Kind, r.Link = "link", &ref
	default:
		list, err := c.Probes(cmd.Context())
		if err != nil {
			return f.asked.advice(err)
		}
		return a.printProbes(cmd.OutOrStdout(), list)
	}
	r.Count, r.IntervalUs = int(f.Count), int(f.Interval.Microseconds())
	p, err := f.finished(cmd, c, r)
	if err != nil {
		return f.asked.advice(err)
	}
	return a.printProbe(cmd.OutOrStdout(), &p)
}

// finished starts a probe and waits for what comes of it.
func (f *probeFlags) finished(cmd *cobra.Command, c *client.Client, r api.ProbeRequest) (api.Probe, error) {
	p, err := c.StartProbe(cmd.Context(), r)
	for end := time.Now().Add(f.asked.wait); err == nil && p.End == nil && time.Now().Before(end); {
		time.Sleep(askAgain)
		p, err = c.Probe(cmd.Context(), p.ID)
	}
	return p, err
}

// printProbe shows a probe. Packets that did not arrive are a fault.
func (a *app) printProbe(w io.Writer, p *api.Probe) error {
	if a.format == "json" {
		if err := printJSON(w, p); err != nil {
			return err
		}
	} else if err := printProbeText(w, p); err != nil {
		return err
	}
	switch {
	case p.State == "failed":
		return fmt.Errorf("probe %s: %s", p.ID, p.Error)
	case p.End == nil:
		return fmt.Errorf("probe %s has not ended; ask again with --id %s", p.ID, p.ID)
	case p.LostAt != nil:
		return errFault
	}
	return nil
}

func printProbeText(w io.Writer, p *api.Probe) error {
	fmt.Fprintf(w, "probe %s of %s, %s: %d of %d arrived\n", p.ID, probed(&p.Request), p.State, p.Arrived, p.Sent)
	if p.Verdict != "" {
		fmt.Fprintf(w, "  %s\n", p.Verdict)
	}
	if p.LostAt != nil {
		fmt.Fprintf(w, "  not seen again behind %s\n", portName(p.LostAt))
	}
	if p.RTT != nil {
		fmt.Fprintf(w, "  there and back: least %v, mean %v, most %v\n", time.Duration(p.RTT.MinNs), time.Duration(p.RTT.MeanNs), time.Duration(p.RTT.MaxNs))
	}
	if len(p.Hops) > 0 {
		var t table
		t.row("  HOP", "SWITCH", "PROBES", "AT")
		for i, h := range p.Hops {
			t.row(fmt.Sprintf("  %d", i+1), h.Switch, h.Packets, "+"+time.Duration(h.LatencyNs).String())
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	if len(p.Patterns) == 0 {
		return nil
	}
	var t table
	t.row("  PATTERN", "SENT", "LOST", "LOSS")
	for _, k := range p.Patterns {
		loss := 0.0
		if k.Sent > 0 {
			loss = float64(k.Sent-k.Arrived) / float64(k.Sent)
		}
		t.row("  "+k.Flow.String(), k.Sent, k.Sent-k.Arrived, percent(loss))
	}
	return t.print(w)
}

// probed names what a probe asks about.
func probed(r *api.ProbeRequest) string {
	if r.Link != nil {
		return portName(r.Link)
	}
	return r.Flow.String()
}

func (a *app) printProbes(w io.Writer, list []api.Probe) error {
	if a.format == "json" {
		return printJSON(w, api.Page[api.Probe]{Items: list})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no probes; --flow or --link sends some")
		return err
	}
	var t table
	t.row("ID", "BEGIN", "STATE", "KIND", "OF", "SENT", "ARRIVED", "FOR", "VERDICT")
	for i := range list {
		p := &list[i]
		t.row(p.ID, clock(p.Begin), p.State, p.Request.Kind, probed(&p.Request), p.Sent, p.Arrived, dash(p.Incident), p.Verdict)
	}
	return t.print(w)
}
