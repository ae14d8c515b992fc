package main

import (
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/preflight"
)

// checkFlags are the flags of weft check.
type checkFlags struct {
	doubles int
	seed    uint64
	proofs  string
	sarif   string
	junit   string
	configs string
	hosts   []string
}

func (a *app) checkCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a fabric before trouble: deadlocks, headroom, ECN, ECMP, failures",
		Long: `Check a topology, or a scenario with its fabric settings and jobs, before there is
trouble: cyclic buffer dependencies as it is, after every single link or switch
failure, and after sampled double failures; hosts that one failure parts; PFC headroom
against link delay, rate and MTU; ECN against PFC thresholds; ECMP polarization; and
collisions of the queue pairs of jobs.

With --config-db the CONFIG_DB of SONiC switches (NAME.json, or NAME/config_db.json) is
compared: MTU, speed, PFC, DSCP maps, ECN and headroom of switches with each other and
with the fabric. Each mismatch has both values and the command that mends it.

With --hosts the settings of hosts, which weft agent --settings writes on each, are
compared with the switch's port at the other end of the link: PFC, DSCPs, MTU and ECN.

With --proofs each finding is proven: a scenario that shows the harm is simulated and
kept as a file for weft run.

The exit code is 3 if there is a fault or a warning. A note takes two failures at once
and does not change the exit code.`,
		Example: `  weft check fabric.yaml
  weft check training.yaml --proofs proofs
  weft check fabric.yaml --sarif check.sarif --junit check.xml
  weft check fabric.yaml --config-db switches/
  weft check fabric.yaml --config-db switches/ --hosts hosts/
  weft check fabric.yaml --double 1000 --seed 7 -o json`,
		Args: argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.doubles < 0 || f.doubles > maxDoubles {
				return usagef("--double %d, want 0 to %d", f.doubles, maxDoubles)
			}
			s, err := scenario.ReadFabric(args[0])
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			opts := preflight.Options{Doubles: f.doubles, Seed: f.seed, Prove: f.proofs != ""}
			if f.configs != "" {
				if opts.ConfigDB, err = preflight.ReadConfigDB(f.configs, s.Topology.Fabric); err != nil {
					return usagef("--config-db: %w", err)
				}
			}
			if len(f.hosts) > 0 {
				if opts.Hosts, err = preflight.ReadHosts(f.hosts, s.Topology.Fabric); err != nil {
					return usagef("--hosts: %w", err)
				}
			}
			r, err := preflight.Run(ctx, s, opts)
			if err != nil {
				return err
			}
			if err := f.write(r, args[0]); err != nil {
				return err
			}
			if a.format == "json" {
				err = printJSON(cmd.OutOrStdout(), r)
			} else {
				err = printPreflight(cmd.OutOrStdout(), r)
			}
			if err == nil && r.Count(preflight.Fault)+r.Count(preflight.Warning) > 0 {
				err = errFault
			}
			return err
		},
	}
	cmd.Flags().IntVar(&f.doubles, "double", 64, "number of double failures to draw and check")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "random seed of the double failures")
	cmd.Flags().StringVar(&f.proofs, "proofs", "", "simulate the proof of each finding and write its scenario to this directory")
	cmd.Flags().StringVar(&f.sarif, "sarif", "", "write findings to this file in SARIF 2.1.0, for code scanning")
	cmd.Flags().StringVar(&f.junit, "junit", "", "write findings to this file as JUnit XML, a test for each rule")
	cmd.Flags().StringVar(&f.configs, "config-db", "", "compare the CONFIG_DB JSON files of SONiC switches in this directory")
	cmd.Flags().StringSliceVar(&f.hosts, "hosts", nil, "compare the settings of hosts: files that weft agent --settings wrote, or folders of them; repeatable")
	return cmd
}

// maxDoubles keeps a mistyped number from running for hours.
const maxDoubles = 1_000_000

// write writes the files that flags ask for.
func (f *checkFlags) write(r *preflight.Report, checked string) error {
	if f.proofs != "" {
		if err := r.WriteProofs(f.proofs); err != nil {
			return fmt.Errorf("--proofs: %w", err)
		}
	}
	if f.sarif != "" {
		err := writeFile(f.sarif, func(w io.Writer) error { return r.WriteSARIF(w, checked, readBuildInfo().Version) })
		if err != nil {
			return fmt.Errorf("--sarif: %w", err)
		}
	}
	if f.junit != "" {
		if err := writeFile(f.junit, r.WriteJUnit); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	return nil
}

// maxFailuresShown bounds the failures that a line names.
const maxFailuresShown = 3

func printPreflight(w io.Writer, r *preflight.Report) error {
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintf(w, "%s: %s: %s\n", f.Severity, f.Rule, f.Text)
		if n := len(f.Failures); n > 1 {
			fmt.Fprintf(w, "  after: %s", joinSome(f.Failures, maxFailuresShown))
			fmt.Fprintln(w)
		}
		if f.Mend != "" {
			fmt.Fprintf(w, "  mend: %s\n", f.Mend)
		}
		if p := f.Proof; p != nil {
			state := "shown by simulation"
			if !p.Holds {
				state = "not shown"
			}
			fmt.Fprintf(w, "  proof: %s: %s%s\n", state, p.Result, proofFile(p))
		}
	}
	_, err := fmt.Fprintf(w, "%d faults, %d warnings, %d notes; %s and %d double failures checked\n",
		r.Count(preflight.Fault), r.Count(preflight.Warning), r.Count(preflight.Note),
		plural.Count(r.Singles, "single failure"), r.Doubles)
	return err
}

func proofFile(p *preflight.Proof) string {
	if p.File == "" {
		return ""
	}
	return "; " + p.File
}

// joinSome joins at most n names and counts the others.
func joinSome(names []string, n int) string {
	out := ""
	for i, name := range names[:min(len(names), n)] {
		if i > 0 {
			out += "; "
		}
		out += name
	}
	if len(names) > n {
		out += fmt.Sprintf("; and %d others", len(names)-n)
	}
	return out
}
