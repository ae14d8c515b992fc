package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// queryHostCommand reads the counters of hosts of a running controller.
func (a *app) queryHostCommand() *cobra.Command {
	var f targetFlags
	class := -1
	cmd := &cobra.Command{
		Use:   "host HOST…",
		Short: "What hosts sent and received, by priority (Key-Increment)",
		Long: `Read the counters of hosts, by name or address, that switches evicted to the memory of
a running controller's collector. The switch that a host is attached to counts, so a
packet counts once for its sender and once for its receiver. Counters share memory
(count-min sketch): none is too low unless reports were lost, and the last line says by
how much it may be too high.`,
		Example: `  weft query host h3 --server http://127.0.0.1:8080
  weft query host 10.0.1.2 --class 3`,
		Args: argumentCount(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if class < -1 || class > 7 {
				return usagef("--class %d, want 0 to 7, or -1 for all", class)
			}
			t, err := f.open(cmd, "", liveStart)
			if err != nil {
				return err
			}
			defer t.close()
			if err := t.finish(cmd.Context()); err != nil {
				return err
			}
			return a.printHostCounters(cmd, t, args, class)
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&class, "class", class, "only this priority, 0 to 7; -1: all")
	return cmd
}

func (a *app) printHostCounters(cmd *cobra.Command, t *target, hosts []string, class int) error {
	var list []api.HostCounters
	var rows table
	rows.row("HOST", "CLASS", "SENT", "PACKETS", "RECEIVED", "PACKETS", "MARKED")
	for _, name := range hosts {
		h, err := t.HostCounters(cmd.Context(), name, class)
		if err != nil {
			return t.explain(err)
		}
		list = append(list, h)
		add := func(class string, c *api.HostCount) {
			rows.row(h.Host, class, model.FormatBytes(model.Bytes(c.SentBytes)), c.SentPackets,
				model.FormatBytes(model.Bytes(c.ReceivedBytes)), c.ReceivedPackets, c.ReceivedMarked)
		}
		for i := range h.Classes {
			add(strconv.Itoa(h.Classes[i].Class), &h.Classes[i].HostCount)
		}
		if len(h.Classes) != 1 {
			add("all", &h.Total)
		}
	}
	out := cmd.OutOrStdout()
	if a.format == "json" {
		return printJSON(out, map[string]any{"hosts": list})
	}
	if err := rows.print(out); err != nil {
		return err
	}
	b := &list[0].Bound
	_, err := fmt.Fprintf(out, "\nupper estimates at %s: a counter is too high at all with a probability of at most %s, and by more than %s with %s\n",
		t.clock(list[0].Time), formatProbability(b.Shared), strconv.FormatFloat(b.Excess, 'g', 3, 64), formatProbability(b.Failing))
	return err
}
