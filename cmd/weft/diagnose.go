package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// diagnoseFlags are the flags of weft diagnose.
type diagnoseFlags struct {
	targetFlags
	timeRange rangeFlags
	query     api.DiagnosesQuery
	wait      time.Duration
	id, draw  string
}

func (a *app) diagnoseCommand() *cobra.Command {
	var f diagnoseFlags
	cmd := &cobra.Command{
		Use:   "diagnose [FLOW]",
		Short: "Diagnose why a flow is slow",
		Long: `Request a diagnosis of a slow flow and wait for the verdict: anomaly, root cause and
culprit flows. Tenants can request diagnoses of flows of their addresses with their
token, and see nothing of other tenants' flows.

Without FLOW it lists the diagnoses of a time range; --id shows one with its
evidence, and --draw writes its provenance graph.

The exit code is 3 if the network delays the flow.`,
		Example: `  weft diagnose 'udp 10.0.0.2:10000 > 10.2.0.2:4791'
  weft diagnose --last 10m
  weft diagnose --id d3 --draw why.svg`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args) },
	}
	f.register(cmd)
	f.timeRange.register(cmd)
	fl := cmd.Flags()
	fl.DurationVar(&f.wait, "wait", 10*time.Second, "maximum time to wait for the verdict")
	fl.StringVar(&f.id, "id", "", "show this diagnosis with its evidence")
	fl.StringVar(&f.draw, "draw", "", "with --id: write its provenance graph to this file, .svg or .dot")
	fl.StringVar(&f.query.After, "after", "", afterHelp)
	fl.IntVar(&f.query.Limit, "top", 100, "maximum number of diagnoses to show")
	return cmd
}

func (f *diagnoseFlags) run(a *app, cmd *cobra.Command, args []string) error {
	switch err := checkTop(f.query.Limit); {
	case err != nil:
		return err
	case len(args) == 1 && f.id != "":
		return usagef("FLOW and --id: want one of them")
	case f.draw != "" && f.id == "":
		return usagef("--draw needs --id, the diagnosis to draw")
	case f.draw != "" && !strings.HasSuffix(f.draw, ".svg") && !strings.HasSuffix(f.draw, ".dot"):
		return usagef("--draw %s, want a file name that ends with .svg or .dot", f.draw)
	case f.wait < 0:
		return usagef("--wait %v, want 0 or more", f.wait)
	}
	t, err := f.open(cmd, "", live.StartOptions{})
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	switch {
	case len(args) == 1:
		return f.requestDiagnosis(a, cmd, t, args[0])
	case f.id != "":
		return f.show(a, cmd, t)
	}
	return f.list(a, cmd, t)
}

// requestDiagnosis requests a diagnosis of a flow and waits for the verdict.
func (f *diagnoseFlags) requestDiagnosis(a *app, cmd *cobra.Command, t *target, flow string) error {
	key, err := model.ParseFlowKey(flow)
	if err != nil {
		return usageError{err}
	}
	s, err := t.ReportSlowFlow(cmd.Context(), api.SlowFlowReport{Flow: key}, min(f.wait, maxWait))
	if err != nil {
		return t.explain(err)
	}
	for end := time.Now().Add(f.wait - maxWait); s.State != "done" && time.Now().Before(end); time.Sleep(pollInterval) {
		if s, err = t.SlowFlow(cmd.Context(), s.ID); err != nil {
			return t.explain(err)
		}
	}
	return a.printSlowFlow(cmd.OutOrStdout(), &s)
}

// show prints one diagnosis and draws its graph.
func (f *diagnoseFlags) show(a *app, cmd *cobra.Command, t *target) error {
	d, err := t.Diagnosis(cmd.Context(), f.id)
	if err != nil {
		return t.explain(err)
	}
	if f.draw != "" {
		drawn, err := t.DiagnosisDrawing(cmd.Context(), f.id, strings.TrimPrefix(filepath.Ext(f.draw), "."))
		if err != nil {
			return t.explain(err)
		}
		if err := os.WriteFile(f.draw, drawn, 0o666); err != nil {
			return err
		}
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), d)
	}
	return printDiagnosis(cmd.OutOrStdout(), t, &d)
}

// list prints the diagnoses of a time range.
func (f *diagnoseFlags) list(a *app, cmd *cobra.Command, t *target) (err error) {
	if f.query.Range, err = f.timeRange.parse(t); err != nil {
		return err
	}
	page, err := t.Diagnoses(cmd.Context(), f.query)
	if err != nil {
		return t.explain(err)
	}
	out := cmd.OutOrStdout()
	if a.format == "json" {
		return printJSON(out, page)
	}
	if len(page.Items) == 0 {
		fmt.Fprintln(out, "no diagnoses")
	} else if err := printDiagnosisRows(out, t, page.Items); err != nil {
		return err
	}
	printNext(out, page.Next)
	return nil
}

// maxWait is how long a controller delays its answer, pollInterval the interval
// of queries after that.
const (
	maxWait      = 5 * time.Second
	pollInterval = 200 * time.Millisecond
)

// maxVictims is how many affected flows of a verdict are listed.
const maxVictims = 8

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
	fmt.Fprintf(w, "diagnosis request %s: %v\n", s.ID, s.Flow)
	switch {
	case s.State != "done":
		fmt.Fprintln(w, "no verdict yet; increase --wait, or request it again")
	case len(s.Verdicts) == 0:
		fmt.Fprintln(w, "no cause found in the network: the flow is not delayed there, or no switch reported on it")
	}
	for i := range s.Verdicts {
		v := &s.Verdicts[i]
		cause := v.RootCause
		if v.CauseDetail != "" {
			cause += " (" + v.CauseDetail + ")"
		}
		fmt.Fprintf(w, "\n%s, root cause %s; the flow is a %s; confidence %s\n", v.Anomaly, cause, v.Role,
			model.FormatShare(v.Confidence))
		for _, c := range v.Culprits {
			fmt.Fprintf(w, "  culprit: %v, share %s\n", c.Flow, model.FormatShare(c.Weight))
		}
		for _, k := range v.Victims[:min(maxVictims, len(v.Victims))] {
			fmt.Fprintf(w, "  affected: %v\n", k)
		}
		if more := len(v.Victims) - maxVictims; more > 0 {
			fmt.Fprintf(w, "  affected: %d more\n", more)
		}
		if v.Others {
			fmt.Fprintln(w, "  flows of other tenants are culprits, too")
		}
		fmt.Fprintf(w, "  %s\n", v.Advice)
		if v.Diagnosis != "" {
			fmt.Fprintf(w, "  details: weft diagnose --id %s\n", v.Diagnosis)
		}
	}
}

func printDiagnosisRows(w io.Writer, t *target, list []api.Diagnosis) error {
	var rows table
	rows.row("ID", "TIME", "ANOMALY", "CAUSE", "LOCATION", "VICTIM", "CONFIDENCE")
	for i := range list {
		d := &list[i]
		rows.row(d.ID, t.clock(d.Time), d.Anomaly, d.RootCause, portName(d.Initial), d.Victim.Flow,
			model.FormatShare(d.Confidence))
	}
	return rows.print(w)
}

func printDiagnosis(w io.Writer, t *target, d *api.DiagnosisDetail) error {
	fmt.Fprintf(w, "%s  %s, root cause %s (%s), confidence %s\n", d.ID, d.Anomaly, d.RootCause, dash(d.CauseDetail),
		model.FormatShare(d.Confidence))
	fmt.Fprintf(w, "%s: victim %v; initial location %s\n", t.clock(d.Time), d.Victim.Flow, portName(d.Initial))
	if d.Remedy != "" {
		fmt.Fprintf(w, "action: %s\n", d.Remedy)
	}
	if a := d.Account; a != nil {
		fmt.Fprintf(w, "%s\n%s%s\n", a.Text, a.Timeline.Text, attribution.Legend)
	}
	for _, c := range d.Culprits {
		culprit := c.Host
		if c.Flow != nil {
			culprit = c.Flow.Flow.String()
		}
		fmt.Fprintf(w, "  culprit: %s, share %s\n", culprit, model.FormatShare(c.Weight))
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
	ports("PFC path", d.PFCPath)
	ports("deadlock cycle", d.DeadlockCycle)
	for _, e := range d.Evidence {
		fmt.Fprintf(w, "  %s\n", e)
	}
	_, err := fmt.Fprintf(w, "%s polled, %s of telemetry\n", plural.Count(d.Switches, "switch"),
		model.FormatBytes(model.Bytes(d.Telemetry)))
	return err
}
