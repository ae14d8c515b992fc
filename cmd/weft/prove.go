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
	"github.com/weft-telemetry/weft/internal/plural"
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

Incidents about packets that do not arrive (loops, black holes, wrong routes, dead links,
losses) are rebuilt from what each switch counted of each flow, and the places that the
verdict names are mended, another in a control, and taken out of service. So are deadlocks,
of which the flows that close the cycle are removed, and imbalance, with other ECMP hashes.

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
	top, err := t.Topology(cmd.Context())
	if err != nil {
		return t.explain(err)
	}
	fabric, err := served.Fabric(&top)
	if err != nil {
		return err
	}
	if settings != nil {
		served.Configure(fabric, settings)
	}
	ids := []string{id}
	if id[0] != 'd' {
		incident, err := t.Incident(cmd.Context(), id)
		if err != nil {
			return t.explain(err)
		}
		if proof.OfDelivery(&incident.Incident) {
			return f.proveDelivery(a, cmd, t, &proof.DeliveryCase{Fabric: fabric, DefaultSettings: settings == nil, Incident: &incident})
		}
		ids = incident.Diagnoses
	}
	c, err := f.caseOf(cmd.Context(), t, ids)
	if err != nil {
		return err
	}
	c.Fabric, c.DefaultSettings = fabric, settings == nil
	r, err := proof.Prove(cmd.Context(), c)
	if err != nil {
		return err
	}
	return f.answer(a, cmd, r.Verdict, r, r.Files(), printProof(r))
}

// proveDelivery tests a verdict about packets that do not arrive, or not by the intended route.
func (f *proveFlags) proveDelivery(a *app, cmd *cobra.Command, t *target, c *proof.DeliveryCase) (err error) {
	if c.Flows, err = proof.ReadFlows(cmd.Context(), t, c.Incident); err != nil {
		return t.explain(err)
	}
	c.Named = proof.PlacesOf(c.Incident)
	r, err := proof.ProveDelivery(cmd.Context(), c)
	if err != nil {
		return err
	}
	return f.answer(a, cmd, r.Verdict, r, r.Files(), printDelivery(r))
}

// answer writes the scenarios of all trials and prints a proof.
func (f *proveFlags) answer(a *app, cmd *cobra.Command, v proof.Verdict, r any, files map[string]string, print func(io.Writer) error) error {
	if err := f.write(files); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	var err error
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), r)
	} else {
		err = print(cmd.OutOrStdout())
	}
	if err == nil && (v == proof.Refuted || v == proof.NotShown) {
		err = errMissed
	}
	return err
}

// caseOf reads diagnoses, and chooses one.
func (f *proveFlags) caseOf(ctx context.Context, t *target, ids []string) (*proof.Case, error) {
	c := &proof.Case{Watchdog: f.watchdog}
	var err error
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
func (f *proveFlags) write(files map[string]string) error {
	if f.out == "" {
		return nil
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(f.out, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func printProof(r *proof.Result) func(w io.Writer) error {
	return func(w io.Writer) error {
		so := ""
		if r.InFlight {
			so = " so far"
		}
		fmt.Fprintf(w, "%s: %s\nvictim: %s, late by %v%s; rebuilt with an error of %.0f %% after %d simulations, senders at %.2f times their mean rate\n\n",
			r.Verdict, r.Text, endpoints(r.Victim), time.Duration(r.LateNs), so, 100*r.Error, r.Runs, r.Speed)
		var tb table
		tb.row("RUN", "LATE", "GAIN", "TIMES IDEAL", "PORTS PAUSED", "WHAT")
		for i, p := range r.Trials() {
			tb.row(p.Name, time.Duration(p.LateNs).Round(10*time.Nanosecond).String(), gainOf(i, p.Gain), fmt.Sprintf("%.2f", p.Slowdown),
				time.Duration(p.PausedNs).Round(time.Microsecond).String(), p.What)
		}
		return printTrials(w, &tb, r.Notes)
	}
}

func printDelivery(r *proof.DeliveryResult) func(w io.Writer) error {
	return func(w io.Writer) error {
		fmt.Fprintf(w, "%s: %s\nvictims: %s; rebuilt counts deviate by %.1f %%, after %d simulations\n\n",
			r.Verdict, r.Text, plural.Count(r.Victims, "flow"), 100*r.Error, r.Runs)
		var tb table
		tb.row("RUN", "HARMED", "GAIN", "OTHERS HARMED", "WHAT")
		for i, p := range r.Trials() {
			tb.row(p.Name, fmt.Sprintf("%.3g %%", 100*p.Harm), gainOf(i, p.Gain), fmt.Sprintf("%.3g %%", 100*p.Others), p.What)
		}
		return printTrials(w, &tb, r.Notes)
	}
}

// gainOf is the gain of the trial with a number; the first is what was recorded.
func gainOf(trial int, gain float64) string {
	if trial == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*gain)
}

func printTrials(w io.Writer, tb *table, notes []string) error {
	if err := tb.print(w); err != nil {
		return err
	}
	for _, n := range notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	return nil
}
