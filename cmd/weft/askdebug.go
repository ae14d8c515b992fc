package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// marksAsked is weft debug of a controller.
type marksAsked struct {
	serverFlags
	flow, host string
	length     time.Duration
	remove     string
}

func (f *marksAsked) add(cmd *cobra.Command) {
	f.serverFlags.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.flow, "flow", "", "of a controller: mark packets of this flow")
	fl.StringVar(&f.host, "host", "", "of a controller: mark all that a host sends")
	fl.DurationVar(&f.length, "for", time.Second, "of a controller: how long to mark, by the fabric's clock")
	fl.StringVar(&f.remove, "remove", "", "of a controller: end the mark of this id")
}

// own are the flags that scenarios do not know.
func (f *marksAsked) own() []string { return []string{"flow", "host", "for", "one-in", "remove"} }

// maxMark is the API's bound, too.
const maxMark = time.Hour

func (f *marksAsked) run(a *app, cmd *cobra.Command, filter string) error {
	c, err := f.client()
	switch {
	case err != nil:
		return err
	case f.length < time.Millisecond || f.length > maxMark:
		return usagef("--for %v, want 1ms to %v", f.length, maxMark)
	}
	if f.remove != "" {
		if err := c.RemoveMark(cmd.Context(), f.remove); err != nil {
			return f.advice(err)
		}
	}
	if filter != "" || f.flow != "" || f.host != "" {
		r := api.MarkRequest{Host: f.host, Filter: filter, DurationMs: int(f.length.Milliseconds())}
		if f.flow != "" {
			if r.Flow, err = model.ParseFlowKey(f.flow); err != nil {
				return usagef("--flow %q: %w", f.flow, err)
			}
		}
		if _, err := c.SetMark(cmd.Context(), r); err != nil {
			return f.advice(err)
		}
	}
	list, err := c.Marks(cmd.Context())
	if err != nil {
		return f.advice(err)
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), api.Page[api.Mark]{Items: list})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "no marks; --flow, --host or --filter sets one")
		return err
	}
	var t table
	t.row("ID", "STATE", "BEGIN", "END", "MARKS", "PACKETS", "TRACES", "FOR")
	for i := range list {
		m := &list[i]
		what := m.Request.Filter
		switch {
		case m.Request.Host != "":
			what = "all of " + m.Request.Host
		case !m.Request.Flow.IsZero():
			what = m.Request.Flow.String()
		}
		t.row(m.ID, m.State, clock(m.Begin), clock(m.End), what, m.Packets, m.Traces, dash(m.Incident))
	}
	return t.print(cmd.OutOrStdout())
}
