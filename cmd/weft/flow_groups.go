package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// showGroups prints the groups of --group-by.
func (f *flowsFlags) showGroups(a *app, cmd *cobra.Command, t *target) error {
	g, err := t.FlowGroups(cmd.Context(), api.FlowGroupsQuery{
		Range: f.query.Range, GroupBy: f.groupBy, Filter: f.query.Filter, Node: f.query.Node, Sort: f.query.Sort, Top: f.query.Limit,
	})
	if err != nil {
		return t.explainFilter(cmd.Context(), err, "flows", f.query.Filter)
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), g)
	}
	return printFlowGroups(cmd.OutOrStdout(), t, &g)
}

func printFlowGroups(w io.Writer, t *target, g *api.FlowGroups) error {
	fmt.Fprintf(w, "flows by %s from %s to %s\n", g.GroupBy, t.clock(g.From), t.clock(g.To))
	printCoverage(w, t, &g.Coverage)
	if len(g.Items) == 0 {
		fmt.Fprintln(w, "no flows")
		return nil
	}
	var rows table
	rows.row("NAME", "FLOWS", "PACKETS", "BYTES", "RATE", "LOST")
	for i := range g.Items {
		x := &g.Items[i]
		name := dash(x.Name)
		if x.Port != nil {
			name = x.Port.String()
		}
		rows.row(name, x.Flows, x.Packets, model.FormatBytes(model.Bytes(x.Bytes)), model.FormatRate(model.Rate(x.RateBps)), x.LostPackets)
	}
	if err := rows.print(w); err != nil {
		return err
	}
	if g.Omitted > 0 {
		fmt.Fprintf(w, "%d more %s; --top lists more\n", g.Omitted, plural.Noun(g.Omitted, "group"))
	}
	printFlowTotals(w, 0, &g.Totals)
	return nil
}

// printFlowTotals prints the sums of all flows that match, if not all are listed.
func printFlowTotals(w io.Writer, listed int, t *api.FlowTotals) {
	if t.Slots == 0 || t.Flows != nil && *t.Flows == uint64(listed) {
		return
	}
	flows := "all flows"
	if t.Flows != nil {
		flows = plural.Count(int(*t.Flows), "flow")
	}
	fmt.Fprintf(w, "total: %s, %s, %s, %d lost\n", flows, plural.Count(int(t.Packets), "packet"),
		model.FormatBytes(model.Bytes(t.Bytes)), t.LostPackets)
}

// printCoverage prints what of the range is missing, in one line; nothing of a
// scenario, which is stored from its start.
func printCoverage(w io.Writer, t *target, c *api.Coverage) {
	if !c.Complete && (!t.isScenario() || len(c.Missing) > 1) {
		fmt.Fprintln(w, c.Text)
	}
}
