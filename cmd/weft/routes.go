package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/scenario/live"
)

// routesFlags are the flags of weft routes.
type routesFlags struct {
	targetFlags
	query api.RoutesQuery
}

func (a *app) routesCommand() *cobra.Command {
	var f routesFlags
	cmd := &cobra.Command{
		Use:   "routes [SWITCH]",
		Short: "Show the routes of switches by BGP, and where they are not as intended",
		Long: `Show the routes that switches have to the fabric's hosts, as they say by BMP: the
neighbours that each forwards to, and those that the topology intends. Hosts that a
switch forwards alike are one row; those attached to it have none.

A route that differs for longer than bmp.settle is drift. Fewer next hops than intended
cost capacity; other ones, and no route, open an incident.

The exit code is 3 if packets take another path than intended, or none.`,
		Example: `  weft routes --drift
  weft routes tor0
  weft routes -o json | jq '.items[] | select(.state == "no-route")'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.query.Drift, "drift", false, "only routes that are not as intended, and have settled")
	cmd.Flags().IntVar(&f.query.Limit, "limit", 1000, "rows at most")
	return cmd
}

func (f *routesFlags) run(a *app, cmd *cobra.Command, args []string) error {
	if f.query.Limit < 1 || f.query.Limit > 10_000 {
		return usagef("--limit %d, want 1 to 10000", f.query.Limit)
	}
	if len(args) > 0 {
		f.query.Switch = args[0]
	}
	t, err := f.open(cmd, "", live.StartOptions{})
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	list, err := t.Routes(cmd.Context(), f.query)
	if err != nil {
		return t.explain(err)
	}
	out := cmd.OutOrStdout()
	if a.format == "json" {
		err = printJSON(out, list)
	} else {
		err = printRoutes(out, &list, f.query.Drift)
	}
	if err == nil && slices.ContainsFunc(list.Items, func(r api.Route) bool { return r.Settled && r.State != "fewer-next-hops" }) {
		err = errFault
	}
	return err
}

func printRoutes(w io.Writer, list *api.RouteList, drift bool) error {
	if len(list.Items) == 0 {
		text := "No switch has sent its routes. bmp.listen of weft serve takes them."
		if drift {
			text = "No route is known that is not as intended."
		}
		_, err := fmt.Fprintln(w, text)
		return err
	}
	var rows table
	rows.row("SWITCH", "PREFIX", "HOSTS", "NEXT HOPS", "INTENDED", "STATE")
	for i := range list.Items {
		r := &list.Items[i]
		hosts := strings.Join(r.Hosts, ", ")
		if n := r.NumHosts - len(r.Hosts); n > 0 {
			hosts += fmt.Sprintf(" and %d more", n)
		}
		state := strings.ReplaceAll(r.State, "-", " ")
		if r.Since != nil && !r.Settled {
			state += " (settling)"
		}
		rows.row(r.Switch, dash(r.Prefix), hosts, dash(strings.Join(r.NextHops, ", ")), strings.Join(r.Intended, ", "), state)
	}
	if err := rows.print(w); err != nil {
		return err
	}
	if list.Omitted > 0 {
		fmt.Fprintf(w, "\n%s omitted: raise --limit, or name a switch.\n", plural.Count(list.Omitted, "row"))
	}
	return nil
}
