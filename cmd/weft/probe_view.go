package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// printProbes prints the results of probes. Lost packets are a fault.
func (a *app) printProbes(w io.Writer, t *target, list []api.Probe) error {
	if a.format == "json" {
		if err := printJSON(w, api.Page[api.Probe]{Items: list}); err != nil {
			return err
		}
		return probeError(list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no packet was dropped or looped: no flow to probe")
		return err
	}
	var links []*api.Probe
	for i := range list {
		if p := &list[i]; p.Request.Kind == "link" {
			links = append(links, p)
		} else if err := printProbe(w, p); err != nil {
			return err
		}
	}
	if len(links) > 0 {
		if err := printLinkProbes(w, links); err != nil {
			return err
		}
	}
	return probeError(list)
}

// printLinkProbes prints the round-trip times of links.
func printLinkProbes(w io.Writer, list []*api.Probe) error {
	var t table
	t.row("LINK", "MIN RTT", "MEDIAN", "MEAN", "P90", "RETURNED", "SENT", "LOST", "UNHEARD")
	for _, p := range list {
		if p.RTT == nil {
			t.row(portName(p.Request.Link), "-", "-", "-", "-", p.Arrived, p.Sent, p.Lost, p.Unheard)
			continue
		}
		ns := func(n int64) string { return model.FormatDuration(time.Duration(n)) }
		t.row(portName(p.Request.Link), ns(p.RTT.MinNs), ns(p.RTT.MedianNs), ns(p.RTT.MeanNs)+" ± "+ns(p.RTT.ErrorNs),
			ns(p.RTT.P90Ns),
			p.Arrived, p.Sent, p.Lost, p.Unheard)
	}
	return t.print(w)
}

// printProbe prints the result of a probe of a flow or of custom packets.
func printProbe(w io.Writer, p *api.Probe) error {
	fmt.Fprintf(w, "probe %s of %s, %s: %d of %d probes arrived", p.ID, probedText(&p.Request), p.State, p.Arrived, p.Sent)
	if p.Unheard > 0 {
		fmt.Fprintf(w, ", %d not heard of: in flight, or their mirrors were lost", p.Unheard)
	}
	fmt.Fprintln(w)
	if p.InjectedAt != "" {
		fmt.Fprintf(w, "  injected at %s\n", p.InjectedAt)
	}
	if p.Verdict != "" {
		fmt.Fprintf(w, "  %s\n", p.Verdict)
	}
	if len(p.Loop) > 0 {
		fmt.Fprintf(w, "  loop: %s\n", strings.Join(p.Loop, " > "))
	}
	if p.LostAt != nil {
		fmt.Fprintf(w, "  lost after %s\n", portName(p.LostAt))
	}
	if p.Loss != nil && p.MirrorLoss != nil {
		fmt.Fprintf(w, "  loss %s; mirror loss %s\n", intervalText(p.Loss), intervalText(p.MirrorLoss))
	}
	if len(p.Hops) > 0 {
		var t table
		t.row("  HOP", "SWITCH", "PROBES", "TIME")
		for i, h := range p.Hops {
			t.row(fmt.Sprintf("  %d", i+1), h.Switch, h.Packets, "+"+model.FormatDuration(time.Duration(h.LatencyNs)))
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	if len(p.Patterns) == 0 {
		return nil
	}
	var t table
	t.row("  PATTERN", "VARIED", "REACHED", "LOST", "LOSS (95 % CONFIDENCE)")
	for _, k := range p.Patterns {
		t.row("  "+k.Flow.String(), dash(k.Varied), k.Reached, k.Sent-k.Arrived, intervalText(&k.Loss))
	}
	return t.print(w)
}

// intervalText formats a share and its confidence interval.
func intervalText(i *api.ShareInterval) string {
	return fmt.Sprintf("%s (%s to %s)", model.FormatShare(i.Share), model.FormatShare(i.Low), model.FormatShare(i.High))
}

// probedText names what a probe measures.
func probedText(r *api.ProbeRequest) string {
	switch {
	case r.Link != nil:
		return portName(r.Link)
	case r.Format != "":
		return r.Format
	}
	return r.Flow.String()
}

// listProbes prints the probes that were sent.
func (a *app) listProbes(w io.Writer, t *target, list []api.Probe) error {
	if a.format == "json" {
		return printJSON(w, api.Page[api.Probe]{Items: list})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no probes; --flow or --link sends some")
		return err
	}
	var rows table
	rows.row("ID", "START", "STATE", "KIND", "TARGET", "SENT", "ARRIVED", "INCIDENT", "VERDICT")
	for i := range list {
		p := &list[i]
		rows.row(p.ID, t.clock(p.Begin), p.State, p.Request.Kind, probedText(&p.Request), p.Sent, p.Arrived,
			dash(p.Incident), p.Verdict)
	}
	return rows.print(w)
}
