package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// diagnoseFlags are those of weft diagnose.
type diagnoseFlags struct {
	serverFlags
	span     spanFlags
	query    api.DiagnosesQuery
	wait     time.Duration
	id, draw string
}

func (a *app) diagnoseCommand() *cobra.Command {
	var f diagnoseFlags
	cmd := &cobra.Command{
		Use:   "diagnose [FLOW]",
		Short: "Ask a controller why a flow is slow",
		Long: `Report a slow flow to a controller and wait for the verdict: which anomaly holds
it up, its kind of cause, and which flows have a part in it. Tenants may ask with
their own token about flows of their own addresses, and are told nothing of
others.

Without FLOW the verdicts of a span of time are listed; --id shows one with what
it rests on, and --draw writes its graph of who waited for whom.

The exit code is 3 if something holds the flow up.`,
		Example: `  weft diagnose 'udp 10.0.0.2:10000 > 10.2.0.2:4791'
  weft diagnose --last 10m
  weft diagnose --id d3 --draw why.svg`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	f.add(cmd)
	f.span.addOfRecords(cmd, "")
	fl := cmd.Flags()
	fl.DurationVar(&f.wait, "wait", 10*time.Second, "how long to wait for the verdict")
	fl.StringVar(&f.id, "id", "", "show this verdict with all that it rests on")
	fl.StringVar(&f.draw, "draw", "", "with --id: write its graph to this file, .svg or .dot")
	fl.StringVar(&f.query.After, "after", "", "go on behind an earlier answer")
	fl.IntVar(&f.query.Limit, "top", 100, "how many to show at most")
	return cmd
}

func (f *diagnoseFlags) run(a *app, cmd *cobra.Command, args []string) error {
	c, err := f.client()
	switch err := errors.Join(err, checkTop(f.query.Limit)); {
	case err != nil:
		return err
	case len(args) == 1 && f.id != "":
		return usagef("a flow and --id: want one of them")
	case f.draw != "" && f.id == "":
		return usagef("--draw is of one verdict, want --id with it")
	case f.draw != "" && !strings.HasSuffix(f.draw, ".svg") && !strings.HasSuffix(f.draw, ".dot"):
		return usagef("--draw %s, want a file whose name ends with .svg or .dot", f.draw)
	case f.wait < 0:
		return usagef("--wait %v, want 0 or more", f.wait)
	case len(args) == 1:
		return f.report(a, cmd, c, args[0])
	case f.id != "":
		return f.show(a, cmd, c)
	}
	return f.list(a, cmd, c)
}

// report asks about a flow and waits for the verdict.
func (f *diagnoseFlags) report(a *app, cmd *cobra.Command, c *client.Client, flow string) error {
	key, err := model.ParseFlowKey(flow)
	if err != nil {
		return usageError{err}
	}
	s, err := c.ReportSlowFlow(cmd.Context(), api.SlowFlowReport{Flow: key}, min(f.wait, maxWait))
	if err != nil {
		return f.advice(err)
	}
	for end := time.Now().Add(f.wait - maxWait); s.State != "done" && time.Now().Before(end); time.Sleep(askAgain) {
		if s, err = c.SlowFlow(cmd.Context(), s.ID); err != nil {
			return f.advice(err)
		}
	}
	return a.printSlowFlow(cmd.OutOrStdout(), &s)
}

// show prints one verdict, and draws its graph.
func (f *diagnoseFlags) show(a *app, cmd *cobra.Command, c *client.Client) error {
	d, err := c.Diagnosis(cmd.Context(), f.id)
	if err != nil {
		return f.advice(err)
	}
	if f.draw != "" {
		drawn, err := c.DiagnosisDrawing(cmd.Context(), f.id, strings.TrimPrefix(filepath.Ext(f.draw), "."))
		if err != nil {
			return f.advice(err)
		}
		if err := os.WriteFile(f.draw, drawn, 0o666); err != nil {
			return err
		}
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), d)
	}
	return printDiagnosis(cmd.OutOrStdout(), &d)
}

// list prints the verdicts of a span of time.
func (f *diagnoseFlags) list(a *app, cmd *cobra.Command, c *client.Client) (err error) {
	if f.query.Range, err = f.span.ofRecords(); err != nil {
		return err
	}
	page, err := c.Diagnoses(cmd.Context(), f.query)
	if err != nil {
		return f.advice(err)
	}
	out := cmd.OutOrStdout()
	if a.format == "json" {
		return printJSON(out, page)
	}
	if len(page.Items) == 0 {
		fmt.Fprintln(out, "no diagnoses")
	} else if err := printDiagnosisRows(out, page.Items); err != nil {
		return err
	}
	more(out, page.Next)
	return nil
}

// maxWait is how long a controller holds an answer back, askAgain how often it is
// asked after that.
const (
	maxWait  = 5 * time.Second
	askAgain = 200 * time.Millisecond
)

// heldUp is how many flows that a verdict holds up are named.
const heldUp = 8

func (a *app) printSlowFlow(w io.Writer, s *api.SlowFlow) error {
	var err error
	if a.format == "json" {
		err = printJSON(w, s)
	} else {
		printVerdicts(w, s)
	}
	if err == nil && len(s.Verdicts) > 0 {
		err = errFault
	}
	return err
}

func printVerdicts(w io.Writer, s *api.SlowFlow) {
	fmt.Fprintf(w, "%v, reported as %s\n", s.Flow, s.ID)
	switch {
	case s.State != "done":
		fmt.Fprintln(w, "no verdict yet; --wait longer, or ask again")
	case len(s.Verdicts) == 0:
		fmt.Fprintln(w, "nothing in the network holds it up, or nothing could be seen")
	}
	for i := range s.Verdicts {
		v := &s.Verdicts[i]
		cause := v.RootCause
		if v.CauseDetail != "" {
			cause += " (" + v.CauseDetail + ")"
		}
		fmt.Fprintf(w, "\n%s, by %s; the flow is a %s; certain to %s\n", v.Anomaly, cause, v.Role, percent(v.Confidence))
		for _, c := range v.Culprits {
			fmt.Fprintf(w, "  part of the cause: %v, %s\n", c.Flow, percent(c.Weight))
		}
		for _, k := range v.Victims[:min(heldUp, len(v.Victims))] {
			fmt.Fprintf(w, "  held up: %v\n", k)
		}
		if more := len(v.Victims) - heldUp; more > 0 {
			fmt.Fprintf(w, "  held up: %d more\n", more)
		}
		if v.Others {
			fmt.Fprintln(w, "  flows of others are part of the cause")
		}
		fmt.Fprintf(w, "  %s\n", v.Advice)
		if v.Diagnosis != "" {
			fmt.Fprintf(w, "  more: weft diagnose --id %s\n", v.Diagnosis)
		}
	}
}

func printDiagnosisRows(w io.Writer, list []api.Diagnosis) error {
	var t table
	t.row("ID", "TIME", "ANOMALY", "CAUSE", "BEGAN AT", "VICTIM", "CERTAIN")
	for i := range list {
		d := &list[i]
		t.row(d.ID, clock(d.Time), d.Anomaly, d.RootCause, portName(d.Initial), d.Victim.Flow, percent(d.Confidence))
	}
	return t.print(w)
}

func portName(p *api.PortRef) string {
	switch {
	case p == nil:
		return "-"
	case p.Peer != "":
		return p.Node + ">" + p.Peer
	}
	return fmt.Sprintf("%s:%d", p.Node, p.Port)
}

func printDiagnosis(w io.Writer, d *api.DiagnosisDetail) error {
	fmt.Fprintf(w, "%s  %s, by %s (%s), certain to %s\n", d.ID, d.Anomaly, d.RootCause, dash(d.CauseDetail), percent(d.Confidence))
	fmt.Fprintf(w, "at %s: %v is held up; it began at %s\n", clock(d.Time), d.Victim.Flow, portName(d.Initial))
	if d.Remedy != "" {
		fmt.Fprintf(w, "to do: %s\n", d.Remedy)
	}
	for _, c := range d.Culprits {
		who := c.Host
		if c.Flow != nil {
			who = c.Flow.Flow.String()
		}
		fmt.Fprintf(w, "  culprit: %s, %s\n", who, percent(c.Weight))
	}
	ports := func(what string, list []api.PortRef) {
		var names []string
		for i := range list {
			names = append(names, portName(&list[i]))
		}
		if len(names) > 0 {
			fmt.Fprintf(w, "  %s: %s\n", what, strings.Join(names, ", "))
		}
	}
	ports("pauses went", d.PFCPath)
	ports("loop", d.DeadlockCycle)
	for _, e := range d.Evidence {
		fmt.Fprintf(w, "  %s\n", e)
	}
	_, err := fmt.Fprintf(w, "%s polled, %v of telemetry\n", plural.Count(d.Switches, "switch"), model.Bytes(d.Telemetry))
	return err
}
