package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// printNow prints the newest states of ports, from the collector's memory.
func (f *portsFlags) printNow(a *app, cmd *cobra.Command, t *target) error {
	now, err := t.PortsNow(cmd.Context(), f.node)
	if err != nil {
		return t.explain(err)
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), now)
	}
	var rows table
	rows.row("PORT", "QUEUE", "LOAD", "PAUSED", "PAUSED NOW", "DISCARDS", "SENT", "AGE")
	for i := range now.Ports {
		p := &now.Ports[i]
		rows.row(portName(&p.PortRef), model.FormatBytes(model.Bytes(p.QueueBytes)), model.FormatShare(p.LoadShare),
			model.FormatShare(p.PausedShare), pausedClasses(p.PausedClasses), p.Discards,
			model.FormatBytes(model.Bytes(p.SentBytes)), formatAge(p.AgeMs))
	}
	out := cmd.OutOrStdout()
	if err := rows.print(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s at %s", plural.Count(len(now.Ports), "port"), t.clock(now.Time))
	if len(now.Missing) > 0 {
		fmt.Fprintf(out, "; no state of %d others, such as %s: their switches wrote none, or other states overwrote it",
			len(now.Missing), portName(&now.Missing[0]))
	}
	fmt.Fprintln(out)
	return nil
}

// pausedClasses formats priorities.
func pausedClasses(list []int) string {
	var text []string
	for _, c := range list {
		text = append(text, strconv.Itoa(c))
	}
	return dash(strings.Join(text, ","))
}

func formatAge(ms float64) string {
	return model.FormatDuration(time.Duration(ms * float64(time.Millisecond)))
}

// queryPortCommand reads the state of ports of a running controller.
func (a *app) queryPortCommand() *cobra.Command {
	var f targetFlags
	cmd := &cobra.Command{
		Use:   "port SWITCH:PORT…",
		Short: "Newest state of switch ports of a running controller (Key-Write)",
		Long: `Read the newest state that switches wrote of their ports, straight from the memory of
a running controller's collector. The exit code is 1 if one of them is not there: its
switch wrote none, or other states overwrote it.`,
		Example: `  weft query port tor0:Ethernet4 --server http://127.0.0.1:8080`,
		Args:    argumentCount(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := f.open(cmd, "", liveStart)
			if err != nil {
				return err
			}
			defer t.close()
			if err := t.finish(cmd.Context()); err != nil {
				return err
			}
			return a.printQueriedPorts(cmd, t, args)
		},
	}
	f.register(cmd)
	return cmd
}

func (a *app) printQueriedPorts(cmd *cobra.Command, t *target, args []string) error {
	var list []api.PortNow
	var rows table
	rows.row("PORT", "QUEUE", "FULLEST", "LOAD", "PAUSED", "PAUSED NOW", "DISCARDS", "SENT", "TIME", "AGE")
	for _, arg := range args {
		node, port, ok := strings.Cut(arg, ":")
		if !ok {
			return usagef("port %q, want SWITCH:PORT such as tor0:Ethernet4 or tor0:2", arg)
		}
		p, err := t.PortNow(cmd.Context(), node, port)
		if err != nil {
			return t.explain(err)
		}
		list = append(list, p)
		rows.row(portName(&p.PortRef), model.FormatBytes(model.Bytes(p.QueueBytes)), model.FormatBytes(model.Bytes(p.MaxQueueBytes)),
			model.FormatRate(model.Rate(p.LoadBps)), model.FormatShare(p.PausedShare), pausedClasses(p.PausedClasses), p.Discards,
			model.FormatBytes(model.Bytes(p.SentBytes)), t.clock(p.Time), formatAge(p.AgeMs))
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), map[string]any{"ports": list})
	}
	return rows.print(cmd.OutOrStdout())
}
