package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/scenario/proof"
	"github.com/weft-telemetry/weft/scenario/served"
)

// proveFlags are the flags of weft prove.
type proveFlags struct {
	targetFlags
	fabric   string
	out      string
	watchdog time.Duration
}

func (a *app) proveCommand() *cobra.Command {
	var f proveFlags
	cmd := &cobra.Command{
		Use:   "prove INCIDENT",
		Short: "Test by experiment whether an incident's cause is the true one",
		Long: `Rebuild what happened from the records of an incident, and run it again without what
the verdict names. From the account of a late packet come what flows sent, which hosts
paused their switch, and when the packet was sent; rates are fitted until the packet is
as late as recorded. Then the culprits are removed, and in a control something else.

A verdict is proven if the packet then arrives in time and in the control it does not,
and refuted if less than half of the delay that it explains is gone. Buffers and
thresholds of switches are in no record: --fabric names a scenario with them. INCIDENT
may be a diagnosis, as d3.

What an operator could do is simulated, too, and the table says what the packet gains:
flows at a quarter of their rate, other ECMP hashes, the port to a host down, a PFC
watchdog, the intended routes, more headroom.

The exit code is 0 if the verdict is proven, wholly or partly, and 1 if it is refuted or
the rebuilt run does not show the symptom.`,
		Example: `  weft prove i12
  weft prove i12 --fabric fabric.yaml --out proof
  weft prove i1 --scenario examples/storm.yaml`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, args[0]) },
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.fabric, "fabric", "", "scenario whose section fabric has the settings of the switches")
	cmd.Flags().DurationVar(&f.watchdog, "watchdog", proof.DefaultWatchdog, "detection time of the PFC watchdog that is tried as a remedy")
	cmd.Flags().StringVar(&f.out, "out", "", "write the scenarios of all trials to this directory, for weft run")
	return cmd
}

func (f *proveFlags) run(a *app, cmd *cobra.Command, id string) error {
	if f.watchdog <= 0 {
		return usagef("--watchdog %v, want more than 0", f.watchdog)
	}
	var settings *scenario.Scenario
	if f.fabric != "" {
		var err error
		if settings, err = scenario.ReadFabric(f.fabric); err != nil {
			return err
		}
	}
	t, err := f.open(cmd, "", live.StartOptions{})
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	if settings == nil && f.scenarioFile != "" {
		// The settings of a scenario are what its operator configured.
		if settings, err = scenario.ReadFabric(f.scenarioFile); err != nil {
			return err
		}
	}
	c, err := f.caseOf(cmd.Context(), t, id, settings)
	if err != nil {
		return err
	}
	r, err := proof.Prove(cmd.Context(), c)
	if err != nil {
		return err
	}
	if err := f.write(r); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), r)
	} else {
		err = printProof(cmd.OutOrStdout(), r)
	}
	if err == nil && (r.Verdict == proof.Refuted || r.Verdict == proof.NotShown) {
		err = errMissed
	}
	return err
}

// caseOf collects the records of an incident, or of one diagnosis.
func (f *proveFlags) caseOf(ctx context.Context, t *target, id string, settings *scenario.Scenario) (*proof.Case, error) {
	top, err := t.Topology(ctx)
	if err != nil {
		return nil, t.explain(err)
	}
	c := &proof.Case{DefaultSettings: settings == nil, Watchdog: f.watchdog}
	if c.Fabric, err = served.Fabric(&top); err != nil {
		return nil, err
	}
	if settings != nil {
		served.Configure(c.Fabric, settings)
	}
	ids := []string{id}
	if id[0] != 'd' {
		incident, err := t.Incident(ctx, id)
		if err != nil {
			return nil, t.explain(err)
		}
		ids = incident.Diagnoses
	}
	var list []api.DiagnosisDetail
	for _, d := range ids {
		detail, err := t.Diagnosis(ctx, d)
		if err != nil {
			return nil, t.explain(err)
		}
		list = append(list, detail)
	}
	if c.Diagnosis, err = proof.Choose(list); err != nil {
		return nil, err
	}
	c.Named = proof.NamedBy(c.Diagnosis)
	return c, nil
}

// write writes the scenarios of all trials.
func (f *proveFlags) write(r *proof.Result) error {
	if f.out == "" {
		return nil
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return err
	}
	for _, p := range r.Trials() {
		if err := os.WriteFile(filepath.Join(f.out, p.Name+".yaml"), []byte(p.Scenario), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func printProof(w io.Writer, r *proof.Result) error {
	fmt.Fprintf(w, "%s: %s\n", r.Verdict, r.Text)
	so := ""
	if r.InFlight {
		so = " so far"
	}
	fmt.Fprintf(w, "victim: %s, late by %v%s; rebuilt with an error of %.0f %% after %d simulations, senders at %.2f times their mean rate\n\n",
		endpoints(r.Victim), time.Duration(r.LateNs), so, 100*r.Error, r.Runs, r.Speed)
	var tb table
	tb.row("RUN", "LATE", "GAIN", "TIMES IDEAL", "PORTS PAUSED", "WHAT")
	for i, p := range r.Trials() {
		gain := "-"
		if i > 0 {
			gain = fmt.Sprintf("%.0f %%", 100*p.Gain)
		}
		tb.row(p.Name, time.Duration(p.LateNs).Round(10*time.Nanosecond).String(), gain, fmt.Sprintf("%.2f", p.Slowdown),
			time.Duration(p.PausedNs).Round(time.Microsecond).String(), p.What)
	}
	if err := tb.print(w); err != nil {
		return err
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	return nil
}
