package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
)

func (a *app) incidentsCommand() *cobra.Command {
	var f serverFlags
	var span spanFlags
	var q api.IncidentsQuery
	cmd := &cobra.Command{
		Use:   "incidents [ID]",
		Short: "List incidents: cause, location, impact",
		Example: `  weft incidents
  weft incidents --last 10m --cause blackhole
  weft incidents --state open --server https://weft.example:8443
  weft incidents i12 -o json`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err := errors.Join(err, checkTop(q.Limit)); err != nil {
				return err
			}
			if len(args) == 1 {
				in, err := c.Incident(cmd.Context(), args[0])
				if err != nil {
					return f.advice(err)
				}
				return a.printIncident(cmd, &in)
			}
			if q.Range, err = span.ofRecords(); err != nil {
				return err
			}
			page, err := c.Incidents(cmd.Context(), q)
			if err != nil {
				return f.advice(err)
			}
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), page)
			}
			if err := printIncidents(cmd.OutOrStdout(), page.Items); err != nil {
				return err
			}
			more(cmd.OutOrStdout(), page.Next)
			return nil
		},
	}
	f.add(cmd)
	span.addOfRecords(cmd, "")
	cmd.Flags().StringVar(&q.After, "after", "", afterHelp)
	cmd.Flags().IntVar(&q.Limit, "top", 100, "maximum number of incidents to show")
	cmd.Flags().StringVar(&q.Cause, "cause", "", "only incidents of this cause, e.g. blackhole")
	cmd.Flags().StringVar(&q.State, "state", "", "only incidents in this state: open or closed")
	cmd.Flags().StringVar(&q.Severity, "severity", "", "only incidents of this severity: notice, warning or critical")
	cmd.Flags().StringVar(&q.Node, "node", "", "only incidents that involve this node")
	return cmd
}

func printIncidents(w io.Writer, list []api.Incident) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no incidents")
		return err
	}
	var t table
	t.row("ID", "STATE", "SEVERITY", "CAUSE", "LOCATION", "START", "SUMMARY")
	for i := range list {
		in := &list[i]
		t.row(in.ID, in.State, in.Severity, in.Cause, in.Location, in.Begin.Format("2006-01-02 15:04:05.000"), in.Summary)
	}
	return t.print(w)
}

func (a *app) printIncident(cmd *cobra.Command, in *api.IncidentDetail) error {
	out := cmd.OutOrStdout()
	if a.format == "json" {
		return printJSON(out, in)
	}
	fmt.Fprintf(out, "%s  %s, %s, %s since %s\n%s\n", in.ID, in.State, in.Severity, in.Cause, in.Begin.Format("2006-01-02 15:04:05.000"), in.Sentence)
	var evidence, missing []string
	for i := range in.Evidence {
		evidence = append(evidence, fmt.Sprintf("%s %d", in.Evidence[i].Source, in.Evidence[i].Count))
	}
	for i := range in.Missing {
		missing = append(missing, in.Missing[i].Source)
	}
	fmt.Fprintf(out, "confidence: %.2f; evidence: %s", in.Confidence, strings.Join(evidence, ", "))
	if len(missing) > 0 {
		fmt.Fprintf(out, "; no evidence from %s", strings.Join(missing, ", "))
	}
	fmt.Fprintln(out)
	if in.Remedy != "" {
		fmt.Fprintf(out, "action: %s\n", in.Remedy)
	}
	fmt.Fprintln(out)
	var t table
	t.row("TIME", "SOURCE", "EVENT")
	for i := range in.Timeline {
		e := &in.Timeline[i]
		t.row(e.Time.Format("15:04:05.000"), e.Source, e.Text)
	}
	return t.print(out)
}
