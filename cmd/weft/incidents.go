package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// incidentsFlags are the flags of weft incidents.
type incidentsFlags struct {
	targetFlags
	timeRange rangeFlags
	query     api.IncidentsQuery
	all       bool
	followed  bool
}

func (a *app) incidentsCommand() *cobra.Command {
	var f incidentsFlags
	cmd := &cobra.Command{
		Use:   "incidents [ID]",
		Short: "List incidents: cause, location, impact; show one with its evidence",
		Long: `List the incidents of a time range, or show one with its evidence and timeline. With
--scenario it runs that scenario in the simulator and lists its incidents. Otherwise
it queries a controller (--server). Open incidents are listed first, and incidents that
were merged into others below these. Notices are listed with --all. With --follow it
prints a line for each incident that opens, changes or closes, until it is interrupted.`,
		Example: `  weft incidents
  weft incidents --last 10m --cause blackhole
  weft incidents --follow --all
  weft incidents --state open --server https://weft.example:8443
  weft incidents i12 -o json
  weft incidents ack i12
  weft incidents mute i12 --for 2h --text 'optics are replaced'
  weft incidents verify i12
  weft incidents --scenario examples/flow-faults.yaml`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, strings.Join(args, "")) },
	}
	f.register(cmd)
	f.timeRange.register(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.query.After, "after", "", afterHelp)
	fl.IntVar(&f.query.Limit, "top", 100, "maximum number of incidents to show")
	fl.BoolVar(&f.all, "all", false, "list notices too: normal background congestion")
	fl.BoolVarP(&f.followed, "follow", "f", false, "print every change until interrupted")
	fl.StringVar(&f.query.Cause, "cause", "", "only incidents of this cause, e.g. blackhole")
	fl.StringVar(&f.query.State, "state", "", "only incidents in this state: open or closed")
	fl.StringVar(&f.query.Severity, "severity", "", "only incidents of this severity: notice, warning or critical")
	fl.StringVar(&f.query.Node, "node", "", "only incidents that involve this node")
	f.completeIncidents(cmd)
	cmd.AddCommand(a.incidentActionCommands()...)
	cmd.AddCommand(a.verifyCommand())
	return cmd
}

func (f *incidentsFlags) run(a *app, cmd *cobra.Command, id string) error {
	if err := checkTop(f.query.Limit); err != nil {
		return err
	}
	t, err := f.open(cmd, "", live.StartOptions{})
	if err != nil {
		return err
	}
	defer t.close()
	if f.query.Range, err = f.timeRange.parse(t); err != nil {
		return err
	}
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if id != "" {
		in, err := t.Incident(cmd.Context(), id)
		switch {
		case err != nil:
			return t.explain(err)
		case a.format == "json":
			return printJSON(out, in)
		}
		return printIncident(out, t, &in)
	}
	if f.followed {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return f.follow(ctx, t, out, a.format == "json")
	}
	page, err := f.list(cmd.Context(), t)
	if err != nil {
		return t.explain(err)
	}
	if a.format == "json" {
		return printJSON(out, page)
	}
	if err := printIncidents(out, t, nested(page.Items)); err != nil {
		return err
	}
	if len(page.Items) == 0 {
		t.explainEmpty(cmd.Context(), out)
	}
	printNext(out, page.Next)
	return nil
}

// runIncidents returns the incidents of a scenario's run that are more than a
// notice, oldest first, and none of a controller: weft incidents lists those.
func (t *target) runIncidents(ctx context.Context) (list []api.Incident, err error) {
	if !t.isScenario() {
		return nil, nil
	}
	r, err := (&rangeFlags{}).parse(t)
	if err != nil {
		return nil, err
	}
	page, err := t.Incidents(ctx, api.IncidentsQuery{Range: r, Paging: api.Paging{Limit: maxTop}})
	if err != nil {
		return nil, t.explain(err)
	}
	for _, in := range slices.Backward(page.Items) {
		if in.Severity != "notice" {
			list = append(list, in)
		}
	}
	return list, nil
}

// printRunIncidents prints the incidents of a scenario's run below another table.
func (t *target) printRunIncidents(w io.Writer, list []api.Incident) error {
	if !t.isScenario() {
		return nil
	}
	fmt.Fprintln(w, "\nincidents")
	return printIncidents(w, t, list)
}

func printIncidents(w io.Writer, t *target, list []api.Incident) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no incidents")
		return err
	}
	var rows table
	rows.row("ID", "STATE", "SEVERITY", "CAUSE", "LOCATION", "START", "SUMMARY")
	for i := range list {
		in := &list[i]
		begin := t.clock(in.Begin)
		if screenOf(w).width > 0 {
			begin = timeOfDay(begin)
		}
		rows.row(in.ID, stateText(in), in.Severity, in.Cause, in.Location, begin, in.Summary)
	}
	return rows.printOn(w, screenOf(w), func(line string) string {
		// The first severity of a line is that of its column, after a state of one or two
		// words.
		f := strings.Fields(line)
		for severity := range severityColours {
			if len(f) > 3 && slices.Contains(f[2:4], severity) {
				return severity
			}
		}
		return ""
	})
}

func printIncident(out io.Writer, t *target, in *api.IncidentDetail) error {
	fmt.Fprintf(out, "%s  %s, %s, %s since %s%s\n%s\n", in.ID, in.State, in.Severity, in.Cause, t.clock(in.Begin),
		handlingText(t, in.Handling), in.Sentence)
	if in.MergedInto != "" {
		fmt.Fprintf(out, "part of %s\n", in.MergedInto)
	}
	if len(in.Parts) > 0 {
		fmt.Fprintf(out, "merged into it: %s\n", strings.Join(in.Parts, ", "))
	}
	var evidence, missing []string
	for i := range in.Evidence {
		evidence = append(evidence, fmt.Sprintf("%s %d", in.Evidence[i].Source, in.Evidence[i].Count))
	}
	for i := range in.Missing {
		missing = append(missing, in.Missing[i].Source)
	}
	fmt.Fprintf(out, "confidence: %s; evidence: %s", model.FormatShare(in.Confidence), strings.Join(evidence, ", "))
	if len(missing) > 0 {
		fmt.Fprintf(out, "; no evidence from %s", strings.Join(missing, ", "))
	}
	fmt.Fprintln(out)
	for i := range in.Evidence {
		if e := &in.Evidence[i]; e.Doubt != "" {
			fmt.Fprintf(out, "doubted: %s, because the %s\n", e.Source, e.Doubt)
		}
	}
	if in.Remedy != "" {
		fmt.Fprintf(out, "action: %s\n", in.Remedy)
	}
	fmt.Fprintln(out)
	var rows table
	rows.row("TIME", "SOURCE", "EVENT")
	for i := range in.Timeline {
		e := &in.Timeline[i]
		rows.row(t.clock(e.Time), e.Source, e.Text)
	}
	if err := rows.print(out); err != nil {
		return err
	}
	return printRunbook(out, in.Runbook)
}
