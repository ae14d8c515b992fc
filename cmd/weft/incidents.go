package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
)

// serverFlags say which controller is asked.
type serverFlags struct{ url, token string }

func (f *serverFlags) add(cmd *cobra.Command) {
	url := os.Getenv("WEFT_SERVER")
	if url == "" {
		url = "http://127.0.0.1:8080"
	}
	cmd.Flags().StringVar(&f.url, "server", url, "the controller's address; WEFT_SERVER sets it, too")
	cmd.Flags().StringVar(&f.token, "token", "", "token for it; WEFT_TOKEN sets it, too")
}

func (f *serverFlags) client() (*client.Client, error) {
	token := f.token
	if token == "" {
		token = os.Getenv("WEFT_TOKEN")
	}
	c, err := client.New(f.url, token, nil)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// advice adds to an error what to do next.
func (f *serverFlags) advice(err error) error {
	var p *client.Problem
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &p):
		return fmt.Errorf("%w; is weft serve or weft demo running there? --server names another", err)
	case p.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w; give the operator's token with --token or WEFT_TOKEN", err)
	}
	return err
}

func (a *app) incidentsCommand() *cobra.Command {
	var f serverFlags
	var q api.IncidentsQuery
	cmd := &cobra.Command{
		Use:   "incidents [ID]",
		Short: "Ask a controller what went wrong",
		Example: `  weft incidents
  weft incidents --state open --server https://weft.example:8443
  weft incidents i12 -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				in, err := c.Incident(cmd.Context(), args[0])
				if err != nil {
					return f.advice(err)
				}
				return a.printIncident(cmd, &in)
			}
			page, err := c.Incidents(cmd.Context(), q)
			if err != nil {
				return f.advice(err)
			}
			if a.format == "json" {
				return printJSON(cmd.OutOrStdout(), page)
			}
			return printIncidents(cmd.OutOrStdout(), page.Items)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&q.State, "state", "", "open or closed ones alone")
	cmd.Flags().StringVar(&q.Severity, "severity", "", "of one severity: notice, warning, critical")
	cmd.Flags().StringVar(&q.Node, "node", "", "that concern a node")
	return cmd
}

func printIncidents(w io.Writer, list []api.Incident) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no incidents")
		return err
	}
	var t table
	t.row("ID", "STATE", "SEVERITY", "CAUSE", "PLACE", "BEGIN", "SUMMARY")
	for i := range list {
		in := &list[i]
		t.row(in.ID, in.State, in.Severity, in.Cause, in.Place, in.Begin.Format(time.RFC3339), in.Summary)
	}
	return t.print(w)
}

func (a *app) printIncident(cmd *cobra.Command, in *api.IncidentDetail) error {
	out := cmd.OutOrStdout()
	if a.format == "json" {
		return printJSON(out, in)
	}
	fmt.Fprintf(out, "%s  %s, %s\n%s\n", in.ID, in.State, in.Severity, in.Sentence)
	if in.Remedy != "" {
		fmt.Fprintf(out, "to do: %s\n", in.Remedy)
	}
	fmt.Fprintln(out)
	var t table
	t.row("TIME", "SOURCE", "WHAT")
	for i := range in.Timeline {
		e := &in.Timeline[i]
		t.row(e.Time.Format("15:04:05.000"), e.Source, e.Text)
	}
	return t.print(out)
}
