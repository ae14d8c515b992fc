package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// printTraceList prints a page of traces, and its only trace hop by hop.
func (f *traceFlags) printTraceList(w io.Writer, t *target, list *traceList) error {
	switch {
	case len(list.Items) == 0:
		fmt.Fprintln(w, "no traces")
	case f.query.Fields != "":
		if err := printTraceFields(w, f.fields(), list.Items); err != nil {
			return err
		}
	default:
		if err := printTraceRows(w, t, list.Items); err != nil {
			return err
		}
	}
	printNext(w, list.Next)
	return t.printRunIncidents(w, list.Incidents)
}

// printTraceRows prints traces in a table.
func printTraceRows(w io.Writer, t *target, list []api.TraceSummary) error {
	var rows table
	rows.row("#", "ID", "TIME", "FLOW", "MIRRORED FOR", "FATE", "LATENCY", "PATH")
	for i := range list {
		one := &list[i]
		latency := "-"
		if len(one.Path) > 1 {
			latency = model.FormatDuration(time.Duration(one.LatencyNs))
		}
		rows.row(i+1, dash(one.ID), t.clock(one.Time), packetText(one), one.Why, one.End, latency, pathText(one.Path))
	}
	return rows.print(w)
}

// packetText is the flow of a packet, or what it is without one.
func packetText(one *api.TraceSummary) string { return cmp.Or(one.Packet, one.Flow.Flow.String()) }

// traceLine formats a trace in one line.
func traceLine(t *target, one *api.TraceSummary) string {
	return fmt.Sprintf("%s  %-9s %v  %s  %s", timeOfDay(t.clock(one.Time)), one.End, packetText(one), one.Why, pathText(one.Path))
}

// fields returns the columns of --fields.
func (f *traceFlags) fields() []string {
	if f.query.Fields == "" {
		return nil
	}
	return strings.Split(f.query.Fields, ",")
}

// printTraceFields prints filter fields of traces as columns.
func printTraceFields(w io.Writer, fields []string, list []api.TraceSummary) error {
	var rows table
	head := []any{"#"}
	for _, name := range fields {
		head = append(head, name)
	}
	rows.row(head...)
	for i := range list {
		cells := []any{i + 1}
		for _, value := range list[i].Fields {
			cells = append(cells, dash(value))
		}
		rows.row(cells...)
	}
	return rows.print(w)
}

// printTrace prints one trace hop by hop.
func printTrace(w io.Writer, t *target, one *api.Trace) error {
	fmt.Fprintf(w, "trace %s: %s, mirrored for %s at %s: %s\n", one.ID, packetText(&one.TraceSummary), one.Why, t.clock(one.Time),
		one.End)
	if one.LostMirrors > 0 {
		fmt.Fprintf(w, "%d mirrors of this packet were lost\n", one.LostMirrors)
	}
	var rows table
	rows.row("HOP", "SWITCH", "IN", "OUT", "TTL", "DSCP", "ECN", "TIME", "TO NEXT HOP", "NOTE")
	visits := map[string]int{}
	for i := range one.Hops {
		visits[one.Hops[i].Switch]++
	}
	for i := range one.Hops {
		h := &one.Hops[i]
		out, toNext, note := cmp.Or(h.OutInterface, portNumber(h.Out)), "-", ""
		if i+1 < len(one.Hops) {
			out += " → " + one.Hops[i+1].Switch
			toNext = model.FormatDuration(time.Duration(one.Hops[i+1].SinceNs))
		}
		switch {
		case one.End == "looped" && visits[h.Switch] > 1:
			note = "loop"
		case i+1 == len(one.Hops) && one.End == traceLost:
			note = "not seen after this hop"
		case h.Depth > 1:
			note = fmt.Sprintf("%d IP headers", h.Depth)
		}
		ttl, dscp, ecn := any(h.TTL), any(h.DSCP), any(h.ECN)
		if one.Packet != "" { // it has no IP header
			ttl, dscp, ecn = "-", "-", "-"
		}
		rows.row(i+1, h.Switch, cmp.Or(h.InInterface, portNumber(h.In)), out, ttl, dscp, ecn,
			"+"+model.FormatDuration(h.Time.Sub(one.Hops[0].Time)), toNext, note)
	}
	return rows.print(w)
}

// traceLost is the fate of a packet that was last seen before its destination.
const traceLost = "lost"
