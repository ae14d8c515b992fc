package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/dataplane/sonic"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/hpcc"
	"github.com/weft-telemetry/weft/scenario/report"
	"github.com/weft-telemetry/weft/sim"
)

// runFlags are the flags of weft run; other commands that run a scenario take
// some of them.
type runFlags struct {
	hpcc     string
	asDCQCN  bool
	unit     string // of BUFFER_SIZE
	seed     uint64
	cores    int
	duration time.Duration
	out      string
	pcap     []string
	parquet  bool
	quiet    bool
	check    bool
	repeats  float64 // share by which iterations that are skipped may differ
	sweep    sweepFlags
	workload workloadFlags
	reports  reportFlags // with --speak
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	f.reports.export = sonic.DefaultConfig()
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a scenario in the simulator and check its expectations",
		Long: `Run a scenario in the packet-level simulator and check its expectations.

A scenario is a YAML file: topology, fabric settings, traffic, faults and expected
results. With --hpcc it is a configuration of the HPCC simulator, with --simai, --htsim,
--goal or --chakra a workload of other simulators, on the topology of --topo. The same
seed gives the same output, byte for byte.

Where hosts have agents, the slow flows they detect are diagnosed from the reports
of the switches: anomaly, initial location, root cause and culprits.

The exit code is 1 if an expectation is not met. It is 3 if the scenario expects
nothing of the kind, but a deadlock formed, a lossless class dropped packets (buffer
full), or agents detected PFC spreading.

--check reads the scenario and everything it names, and runs nothing. --set changes a
value of the file. --seeds runs the scenario with each seed and prints the mean of
every figure with its 95 % confidence interval; --vary does so with each value of a setting, and --plot draws
the figures with their confidence bands. --csv keeps the runs in a file, and a
sweep that was interrupted goes on where it stopped.

--skip-repeats ends the run of a collective with many iterations when these repeat, and
says when the last one would end if they go on like that.

With --speak sonic the scenario runs by the wall clock, and its switches export what SONiC
switches do, for a running weft serve: sFlow to --send, high-frequency telemetry to --otlp, and
every switch is a gNMI target from --gnmi on. It starts when every target has a subscriber. No
expectation is checked: what the fabric shows is the service's to find.`,
		Example: `  weft run examples/incast.yaml
  weft run examples/deadlock.yaml --out results
  weft run examples/storm.yaml --out results --pcap 'tor7>h15' -o json
  weft run examples/incast.yaml --check
  weft run examples/incast.yaml --seeds 1..20 --set fabric.alpha=1/4 --csv alpha.csv
  weft run examples/incast.yaml --seeds 1..10 --vary fabric.alpha=1/16,1/8,1/4 --csv alpha.csv --parquet --plot plots
  weft run examples/recording/scenario.yaml --speak sonic --gnmi 127.0.0.1:50051 --send udp://127.0.0.1:6343 --counters 100ms
  weft run --hpcc mix/config.txt --out results
  weft run --htsim examples/htsim/permutation.cm --topo examples/htsim/fat-tree.topo
  weft run --simai examples/simai/dense.txt --topo examples/simai/rails.topo --conf examples/simai/network.conf`,
		Args: func(cmd *cobra.Command, args []string) error {
			format, path, err := f.workload.given()
			switch {
			case err != nil:
				return err
			case path != "" && f.hpcc != "":
				return fmt.Errorf("--%s %s and --hpcc %s: want one of them", format, path, f.hpcc)
			case path != "" && len(args) > 0:
				return fmt.Errorf("%s and --%s %s: want one of them", args[0], format, path)
			case f.hpcc != "" && len(args) > 0:
				return fmt.Errorf("%s and --hpcc %s: want one of them", args[0], f.hpcc)
			case path != "" || f.hpcc != "":
				return nil
			}
			return argumentCount(1, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if err := f.checkSpeak(cmd.Flags().Changed); err != nil {
				return err
			}
			if cmd.Flags().Changed("cores") && f.cores < 1 || f.cores > sim.MaxCores {
				return usagef("--cores %d, want 1 to %d", f.cores, sim.MaxCores)
			}
			if changed := cmd.Flags().Changed("skip-repeats"); changed && !(f.repeats > 0 && f.repeats < 1) {
				return usagef("--skip-repeats %v, want a share above 0 and below 1", f.repeats)
			} else if changed && f.sweep.seeds != "" {
				return usagef("--skip-repeats is for one run, and --seeds makes several")
			}
			if f.sweep.seeds != "" {
				return f.runSweep(ctx, a, cmd, strings.Join(args, ""))
			}
			s, err := f.readScenario(cmd, args)
			if err != nil {
				return err
			}
			if f.check {
				return a.checkScenario(cmd, s, args)
			}
			if f.reports.speak != "" {
				f.reports.export.Seed = s.Seed
				return a.report(ctx, cmd, &f.reports, scenarioReports(s, f.reports.export))
			}
			if err := f.makeOutputDir(); err != nil {
				return err
			}
			bar := newProgressBar(cmd.ErrOrStderr(), f.quiet)
			r, err := scenario.Run(ctx, s, f.options(), bar.show)
			bar.clear()
			if err != nil {
				return err
			}
			bar.done(r)
			if f.out != "" {
				if err := f.writeResult(ctx, r); err != nil {
					return err
				}
			}
			if a.format == "json" {
				err = printJSON(cmd.OutOrStdout(), r)
			} else {
				err = printResult(cmd.OutOrStdout(), r)
			}
			if err != nil {
				return err
			}
			switch r.Verdict {
			case scenario.Fail:
				return errMissed
			case scenario.UnexpectedFault:
				return errFault
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&f.hpcc, "hpcc", "",
		"run this configuration file of the HPCC simulator, or of Hawkeye's fork of it")
	cmd.Flags().BoolVar(&f.asDCQCN, "dcqcn", false,
		"with --hpcc or --simai: use DCQCN instead of the configured congestion control")
	cmd.Flags().StringVar(&f.unit, "buffer-unit", "",
		"with --hpcc or --simai: unit of BUFFER_SIZE, KiB or MiB; default: KiB for Hawkeye's fork, MiB for others")
	cmd.Flags().StringVar(&f.out, "out", "",
		"write results to this directory: report.html, fct.txt, pfc.txt, qlen.txt, trace.json (Perfetto), CSV, JSON, pcapng")
	cmd.Flags().BoolVar(&f.parquet, "parquet", false,
		"with --out: flows, ports and pauses as Parquet, too; with --csv: the runs of the sweep, beside FILE.csv as FILE.parquet")
	cmd.Flags().StringArrayVar(&f.pcap, "pcap", nil,
		"with --out: capture the link of this port, e.g. tor0:Ethernet4 or 'tor0>leaf1'; repeatable")
	cmd.Flags().IntVar(&f.cores, "cores", 0, "cores to run on; results do not depend on it (default: all for fabrics of 1000 nodes or more, else one)")
	cmd.Flags().Float64Var(&f.repeats, "skip-repeats", 0,
		"end the run when 16 iterations of its collective differ by at most this share of their mean (0.01 if none is given), and say when the last one would end")
	cmd.Flags().Lookup("skip-repeats").NoOptDefVal = "0.01"
	cmd.Flags().BoolVar(&f.check, "check", false, "check the scenario and the files it names, and exit")
	cmd.Flags().StringVar(&f.reports.send, "send", "", "with --speak: send sFlow to a running weft serve, udp://HOST:PORT")
	f.reports.register(cmd, "")
	f.sweep.register(cmd)
	f.workload.register(cmd)
	f.register(cmd)
	return cmd
}

// register adds the flags of every command that runs a scenario.
func (f *runFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.Uint64Var(&f.seed, "seed", 0, "random seed, instead of the scenario's")
	fl.DurationVar(&f.duration, "duration", 0, "simulated duration, instead of the scenario's")
	fl.BoolVar(&f.quiet, "quiet", false, "no progress on standard error")
}

// checkSpeak rejects flags of a fabric that speaks, or that it cannot have.
func (f *runFlags) checkSpeak(changed func(flag string) bool) error {
	if f.reports.speak == "" {
		for _, name := range append([]string{"send"}, onlyWithSpeak...) {
			if changed(name) {
				return usagef("--%s needs --speak", name)
			}
		}
		return nil
	}
	for _, name := range []string{"out", "pcap", "seeds", "cores", "skip-repeats"} {
		if changed(name) {
			return usagef("--%s: a scenario with --speak runs once and has no results of its own", name)
		}
	}
	if !f.reports.realTime() {
		return usagef("--speak needs --send, --gnmi or --otlp")
	}
	return f.reports.check()
}

// readScenario reads the scenario to run and applies the flags to it.
func (f *runFlags) readScenario(cmd *cobra.Command, args []string) (s *scenario.Scenario, err error) {
	format, path, err := f.workload.given()
	switch {
	case err != nil:
		return nil, usageError{err}
	case f.asDCQCN && f.hpcc == "" && format != "simai":
		return nil, usagef("--dcqcn is for --hpcc and --simai")
	case f.unit != "" && f.hpcc == "" && format != "simai":
		return nil, usagef("--buffer-unit is for --hpcc and --simai")
	case f.unit != "" && bufferUnits[f.unit] == 0:
		return nil, usagef("--buffer-unit %s, want KiB or MiB", f.unit)
	case f.parquet && f.out == "" && f.sweep.seeds == "":
		return nil, usagef("--parquet needs --out, the directory to write to, or --seeds with --csv")
	case (f.sweep.vary != "" || f.sweep.plot != "") && f.sweep.seeds == "":
		return nil, usagef("--vary and --plot need --seeds")
	case len(f.pcap) > 0 && f.out == "":
		return nil, usagef("--pcap needs --out, the directory to write to")
	case cmd.Flags().Changed("duration") && (f.duration <= 0 || f.duration > scenario.MaxDuration):
		return nil, usagef("--duration %v, want above 0 and at most %v", f.duration, scenario.MaxDuration)
	case f.hpcc != "":
		s, err = f.fromHPCC(cmd.Flags().Changed("seed"))
	case format == "simai":
		s, err = f.workload.readSimAI(path, f.hpccOptions(cmd.Flags().Changed("seed")))
	case path != "":
		s, err = f.workload.read(format, path)
	default:
		s, err = f.sweep.read(args[0])
	}
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("seed") {
		s.Seed = f.seed
	}
	if f.duration > 0 {
		if s.Duration = f.duration - time.Duration(s.Base); s.Duration <= 0 {
			return nil, usagef("--duration %v, want more than %v, the start of the first flow", f.duration,
				time.Duration(s.Base))
		}
	}
	for _, name := range f.pcap {
		p, err := s.Port(name)
		if err != nil {
			return nil, usagef("--pcap %s: %v", name, err)
		}
		s.Output.Capture = append(s.Output.Capture, p)
	}
	return s, nil
}

// bufferUnits are the units of BUFFER_SIZE; empty: the one that the file's keys say.
var bufferUnits = map[string]model.Bytes{"": 0, "KiB": model.KiB, "MiB": model.MiB}

func (f *runFlags) hpccOptions(seeded bool) hpcc.Options {
	o := hpcc.Options{Seed: 1, AsDCQCN: f.asDCQCN, BufferUnit: bufferUnits[f.unit]}
	if seeded {
		o.Seed = f.seed
	}
	return o
}

// fromHPCC reads an HPCC configuration, which has no seed.
func (f *runFlags) fromHPCC(seeded bool) (*scenario.Scenario, error) {
	c, err := hpcc.Read(f.hpcc)
	if err != nil {
		return nil, usageError{err}
	}
	setup, err := hpcc.Build(c, f.hpccOptions(seeded))
	if err != nil {
		return nil, usageError{err}
	}
	return scenario.FromHPCC(c, setup), nil
}

// makeOutputDir makes the directory for results before the run, so that a bad
// path fails early.
func (f *runFlags) makeOutputDir() error {
	if f.out == "" {
		return nil
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

func (f *runFlags) options() (o scenario.Options) {
	o.Cores, o.SkipRepeats = f.cores, f.repeats
	if f.out == "" {
		return o
	}
	o.Capture = func(_ model.Port, name string) (io.WriteCloser, error) {
		return os.Create(filepath.Join(f.out, strings.ReplaceAll(name, ":", "-")+".pcapng"))
	}
	return o
}

// writeResult writes all files of a result.
func (f *runFlags) writeResult(ctx context.Context, r *scenario.Result) error {
	if err := r.Run.WriteDir(f.out); err != nil {
		return err
	}
	if f.parquet {
		if err := report.WriteParquet(ctx, f.out); err != nil {
			return err
		}
	}
	out, err := os.Create(filepath.Join(f.out, "result.json"))
	if err != nil {
		return err
	}
	if err := printJSON(out, r); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

func printResult(w io.Writer, r *scenario.Result) error {
	if r.About != "" {
		fmt.Fprintf(w, "%s\n\n", r.About)
	}
	if err := r.Summary.WriteText(w); err != nil {
		return err
	}
	if len(r.Jobs) > 0 {
		fmt.Fprintln(w)
		var t table
		t.row("jobs", "finished", "mean", "p50", "p99", "max")
		for _, j := range r.Jobs {
			t.row(j.Name, fmt.Sprintf("%d of %d", j.Finished, j.Total), model.FormatDuration(j.Mean),
				model.FormatDuration(j.P50), model.FormatDuration(j.P99), model.FormatDuration(j.Max))
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	for i := range r.CriticalPaths {
		fmt.Fprintf(w, "\n%v\n", &r.CriticalPaths[i])
	}
	if t := r.Telemetry; t != nil {
		fmt.Fprintf(w, "\n%v\n", t)
	}
	if err := printDiagnoses(w, r); err != nil {
		return err
	}
	if len(r.Injected) > 0 {
		fmt.Fprintln(w, "\ninjected")
	}
	for _, what := range r.Injected {
		fmt.Fprintln(w, "- "+what)
	}
	if len(r.Expected) > 0 {
		fmt.Fprintln(w)
		var t table
		t.row("expected", "want", "got", "verdict")
		for _, e := range r.Expected {
			verdict := "PASS"
			if !e.Pass {
				verdict = "FAIL"
			}
			t.row(e.What, e.Want, e.Got, verdict)
		}
		if err := t.print(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\n"+map[scenario.Verdict]string{
		scenario.Pass:            "verdict: PASS",
		scenario.Fail:            "verdict: FAIL: an expectation was not met",
		scenario.UnexpectedFault: "verdict: FAULT, not expected: " + strings.Join(r.Faults, "; "),
	}[r.Verdict])
	return err
}

// printDiagnoses prints the diagnoses of the flows that agents detected: a table,
// then a sentence and a remedy for each.
func printDiagnoses(w io.Writer, r *scenario.Result) error {
	if r.DiagnosisRequests == nil {
		return nil
	}
	fmt.Fprintf(w, "\n%v\n", r.DiagnosisRequests)
	if len(r.Diagnoses) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	var t table
	t.row("diagnosis", "root cause", "detail", "location", "culprits", "victims", "switches", "confidence")
	for _, d := range r.Diagnoses {
		at := "-"
		if d.Initial != nil {
			at = d.Initial.String()
		}
		t.row(d.Anomaly.String(), d.Cause.String(), d.Detail.String(), at, len(d.Culprits), len(d.Victims),
			d.Switches, model.FormatShare(d.Confidence))
	}
	if err := t.print(w); err != nil {
		return err
	}
	for i := range r.Diagnoses {
		fmt.Fprintf(w, "- %s\n", r.Diagnoses[i].Sentence())
		if text := r.Diagnoses[i].Account; text != "" {
			fmt.Fprintf(w, "  %s\n", text)
		}
		if last := i + 1; last == len(r.Diagnoses) || r.Diagnoses[last].Remedy != r.Diagnoses[i].Remedy { // equal advice once
			fmt.Fprintf(w, "  Action: %s.\n", r.Diagnoses[i].Remedy)
		}
	}
	return nil
}
