package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/console"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/dataplane/sonic"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/live"
)

// demoFlags are the flags of weft demo.
type demoFlags struct {
	live.Config
	rate   string
	pace   float64
	every  time.Duration
	listen string
	pprof  string
	store  string
	once   bool

	scenario string // file
	reportFlags
}

func (a *app) demoCommand() *cobra.Command {
	f := demoFlags{Config: live.DefaultConfig(), every: 30 * time.Second, listen: "127.0.0.1:8080"}
	f.export = sonic.DefaultConfig()
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run Weft on a simulated fabric with injected faults",
		Long: `Run Weft on a simulated fabric with injected faults. It needs no configuration and
no root.

A simulated fat-tree carries RDMA and TCP traffic. Every switch runs all telemetry
programs; their reports go over DTA into memory, from there to the analyses, and
into a DuckDB file. A fault is injected every 30 seconds: an incast, a black hole, a
PFC storm, a forwarding loop, silent drops, a PFC deadlock, an ECMP imbalance. The
console and the API at 127.0.0.1:8080 show what Weft finds.

A 100 Gb/s fabric carries more packets than can be simulated in real time, so it
runs slower than real time; a 1 Gb/s fabric runs in real time. --pace sets the ratio
of simulated time to real time.

With --once every fault is injected once, as fast as the machine can, and the
findings are compared with the injected faults. The exit code is 1 if a fault was
missed or a finding was false.

With --record or --send, or with --speak, the fabric only reports, and another Weft analyses: there is
no console, and links have 1 Gb/s by default. --record writes the reports of every
fault to a pcapng file, and the topology beside it, for weft replay. --send sends them
to a running weft serve in real time.

With --formats int,erspan labels leave as INT reports and mirrors as ERSPAN packets,
which int.listen and erspan.listen of weft serve receive; the rest leaves by DTA. To
send ERSPAN packets needs CAP_NET_RAW.

With --speak sonic switches run no program of Weft. They export what SONiC switches do:
with --send or --record, sFlow samples of packets, interface counters and drop notifications;
with --gnmi, every switch is a gNMI target with SONiC's COUNTERS_DB and LLDP neighbours, on a
loopback port of its own without TLS, which are printed as a service's configuration;
with --otlp, counters of high-frequency telemetry go to an OTLP collector.

With --scenario the fabric, its traffic and its faults are those of a scenario file.`,
		Example: `  weft demo
  weft demo --rate 1Gb/s
  weft demo --once --seed 7
  weft demo --scenario examples/storm.yaml --pace 0.001
  weft demo --record reports.pcapng
  weft demo --send udp://127.0.0.1:40040
  weft demo --record reports.pcapng --formats int,erspan
  weft demo --speak sonic --send udp://127.0.0.1:6343 --counters 1s --sampling 256
  weft demo --speak sonic --gnmi 127.0.0.1:50051 --send udp://127.0.0.1:6343 --sampling 256
  weft demo --speak sonic --otlp 127.0.0.1:4317 --otlp-interval 50ms`,
		Args: argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if err := f.check(cmd); err != nil {
				return err
			}
			if f.given() {
				return a.demoReports(ctx, cmd, &f)
			}
			if f.once {
				return a.demoOnce(ctx, cmd, &f)
			}
			return demoLive(ctx, cmd, &f)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&f.K, "k", f.K, "ports per switch of the fat-tree (4 to 16)")
	fl.StringVar(&f.rate, "rate", f.Rate.String(), "rate of the links")
	fl.Float64Var(&f.Load, "load", f.Load, "background load, as a share of the hosts' link capacity")
	fl.Uint64Var(&f.Seed, "seed", f.Seed, "random seed of traffic, routes and faults")
	fl.Float64Var(&f.pace, "pace", 0, "simulated seconds per real second; 0 chooses it by the link rate")
	fl.DurationVar(&f.every, "every", f.every, "real time between injected faults; 0 injects none")
	fl.StringVar(&f.listen, "listen", f.listen, "address of the console and the API")
	fl.StringVar(&f.pprof, "pprof", "", "loopback address of the Go profiler (default: disabled)")
	fl.StringVar(&f.store, "store", "", "keep records in this DuckDB file (default: a temporary file)")
	fl.StringVar(&f.scenario, "scenario", "", "run this scenario instead of the demo's fabric")
	fl.StringVar(&f.record, "record", "", "record the reports of every fault in this pcapng file, without a console")
	fl.StringVar(&f.send, "send", "", "send reports to a running weft serve, udp://HOST:PORT, without a console")
	fl.StringVar(&f.clock, "clock", "", "with --record: time at which the fabric's clocks start (default: now)")
	fl.StringSliceVar(&f.formats, "formats", nil, "with --record or --send: formats beside DTA: int for labels, erspan for mirrors")
	fl.StringVar(&f.sendINT, "send-int", "", "with --formats int: address of INT reports, udp://HOST:PORT (default: port 32766 of --send)")
	f.register(cmd, "with --record, --send, --gnmi or --otlp: ")
	fl.BoolVar(&f.once, "once", false, "inject every fault once at full speed and compare the findings")
	return cmd
}

// maxPace is also the API's limit.
const maxPace = 1000.0

func (f *demoFlags) check(cmd *cobra.Command) error {
	if err := f.checkCombination(cmd.Flags().Changed); err != nil {
		return err
	}
	if err := f.readFormats(); err != nil {
		return err
	}
	var err error
	if f.Rate, err = model.ParseRate(f.rate); err != nil || f.Rate < 10*model.Mbps {
		return usagef("--rate %q, want a rate such as 100Gb/s, at least 10Mb/s", f.rate)
	}
	switch {
	case f.K < 4 || f.K > 16 || f.K%2 != 0:
		return usagef("--k %d, want an even number from 4 to 16", f.K)
	case !(f.Load > 0 && f.Load <= 0.5):
		return usagef("--load %v, want above 0 and at most 0.5", f.Load)
	case !(f.pace >= 0 && f.pace <= maxPace):
		return usagef("--pace %v, want 0 to %v", f.pace, maxPace)
	case f.every < 0:
		return usagef("--every %v, want 0 or more", f.every)
	}
	if err := f.speakFlags.check(); err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return usagef("--listen %q, want ADDRESS:PORT", f.listen)
	}
	if f.pace == 0 {
		f.pace = live.PaceOf(f.Rate)
	}
	return nil
}

// checkCombination rejects flags that exclude each other. A fabric that reports to
// others has links of 1 Gb/s by default: that runs in real time.
func (f *demoFlags) checkCombination(changed func(flag string) bool) error {
	reports := f.given()
	for _, one := range []struct {
		is    bool
		what  string
		flags []string
	}{
		{reports, "a fabric that only reports has neither console nor store: the service that takes the reports has", []string{"listen", "store", "pprof", "once", "pace"}},
		{f.record != "" && !f.realTime(), "--record injects every fault once, as fast as possible", []string{"every"}},
		{f.speak == "", "needs --speak", onlyWithSpeak},
		{!reports, "needs --record, --send, --gnmi or --otlp", []string{"speak"}},
		{f.record == "", "needs --record", []string{"clock"}},
		{f.record == "" && f.send == "", "needs --record or --send", []string{"formats", "send-int"}},
		{f.realTime(), "--send, --gnmi and --otlp run by the wall clock", []string{"clock"}},
		{f.otlp == "", "needs --otlp", []string{"otlp-interval"}},
		{f.scenario != "", "the scenario has its own fabric, traffic and faults", []string{"k", "rate", "load", "every", "once"}},
	} {
		for _, name := range one.flags {
			if one.is && changed(name) {
				return usagef("--%s: %s", name, one.what)
			}
		}
	}
	if reports && !changed("rate") {
		f.rate = "1Gb/s"
	}
	return nil
}

// readScenario reads the scenario of --scenario.
func (f *demoFlags) readScenario(cmd *cobra.Command) (*scenario.Scenario, error) {
	s, err := scenario.Read(f.scenario)
	if err != nil {
		return nil, usageError{err}
	}
	if cmd.Flags().Changed("seed") {
		s.Seed = f.Seed
	}
	if f.speak == "" { // else switches run no program of Weft
		if err := live.NeedTelemetry(s); err != nil {
			return nil, usageError{err}
		}
	}
	return s, nil
}

// demoLive runs until it is interrupted.
func demoLive(ctx context.Context, cmd *cobra.Command, f *demoFlags) (err error) {
	out := cmd.OutOrStdout()
	path := f.store
	if path == "" {
		dir, err := os.MkdirTemp("", "weft-demo-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		path = filepath.Join(dir, "weft.duckdb")
	}
	var own *scenario.Scenario
	if f.scenario != "" {
		if own, err = f.readScenario(cmd); err != nil {
			return err
		}
		f.every = 0
	}
	s, err := live.NewSystem(live.Options{
		Config: f.Config, Scenario: own, Pace: f.pace, FaultInterval: f.every, Store: path, Listen: f.listen, Pprof: f.pprof, Console: console.Files(),
		Build: readBuildInfo(), Log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(),
			&slog.HandlerOptions{Level: slog.LevelWarn})),
		Event: func(line string) { fmt.Fprintln(out, line) },
	})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("a fat-tree of %d hosts at %s", f.K*f.K*f.K/4, model.FormatRate(f.Rate))
	if own != nil {
		what = fmt.Sprintf("the scenario %s: %s for %s", own.Name, nodeCount(own.Topology.Fabric), model.FormatDuration(own.Duration))
	}
	fmt.Fprintf(out, "Weft monitors %s; %s.\n", what, formatPace(f.pace))
	fmt.Fprintf(out, "Console and API: http://%s/    Records: %s    Ctrl-C stops it.\n\n", s.Addr(), path)
	err = s.Run(ctx)
	fmt.Fprintln(out)
	if right, judged := s.Found(); own == nil || judged > 0 {
		fmt.Fprintf(out, "%d of %d faults found with their cause at their place. ", right, judged)
	}
	if f.store == "" {
		fmt.Fprintln(out, "Records were temporary; --store FILE keeps them.")
	} else {
		fmt.Fprintf(out, "Records are in %s: weft serve --store-path %s shows them.\n", path, path)
	}
	return err
}

// formatPace formats the ratio of simulated time to real time.
func formatPace(pace float64) string {
	switch {
	case pace == 1:
		return "it runs in real time"
	case pace < 1:
		return fmt.Sprintf("it runs %.3g× slower than real time", 1/pace)
	}
	return fmt.Sprintf("it runs up to %.3g× faster than real time", pace)
}

// demoOnce injects every fault once and compares the findings.
func (a *app) demoOnce(ctx context.Context, cmd *cobra.Command, f *demoFlags) error {
	var d *live.Director
	lab, err := live.NewDemo(f.Config, control.Output{Incident: func(in *incident.Incident) { d.ObserveIncident(in) }})
	if err != nil {
		return err
	}
	defer lab.Close()
	d = live.NewDirector(lab)
	progress := cmd.ErrOrStderr()
	score, err := d.RunProgramme(ctx, func(one *live.Injected) {
		if a.format != "json" {
			fmt.Fprintf(progress, "%-12s %s\n", one.Kind, one.What)
		}
	})
	if err != nil {
		return err
	}
	report := score.Describe(lab, d)
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), report)
	} else {
		err = printScore(cmd.OutOrStdout(), report)
	}
	if err == nil && !report.AllFound {
		err = errMissed
	}
	return err
}

func printScore(w io.Writer, r live.Report) error {
	fmt.Fprintln(w)
	var t table
	t.row("FAULT", "LOCATION", "FOUND", "AFTER", "CAUSE", "SOURCES")
	for _, f := range r.Faults {
		found, after := "no", "-"
		if f.Found {
			found, after = "yes", time.Duration(f.FoundAfterMs*float64(time.Millisecond)).String()
		}
		t.row(f.Kind, f.Where, found, after, dash(f.Cause), dash(f.Sources))
	}
	if err := t.print(w); err != nil {
		return err
	}
	for _, in := range r.FalseAlarms {
		fmt.Fprintf(w, "\ninvented: %s at %s: %s", in.Cause, in.Place, in.Text)
	}
	_, err := fmt.Fprintf(w,
		"\n%d of %d faults found with the right cause, %d invented; %v of the fabric, %d packet-hops\n",
		len(r.Faults)-r.Missed, len(r.Faults), len(r.FalseAlarms), r.Simulated, r.Hops)
	return err
}
