package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// jobsFlags are the flags of weft jobs.
type jobsFlags struct {
	targetFlags
	timeRange rangeFlags
	svg       string
	metric    string
	nccl      string
	ranks     string
}

func (a *app) jobsCommand() *cobra.Command {
	var f jobsFlags
	cmd := &cobra.Command{
		Use:   "jobs [JOB]",
		Short: "List jobs, their steps, and whether the network or a rank makes them slow",
		Long: `List the jobs of the fabric: those of the configuration, and those that flow records show,
hosts that exchange the same bytes in every step. For each: ranks, pattern, time from step to
step, the part of it in which ranks send, and what slows it: a rank that computes longer, a
host that takes packets too slowly, a link that loses packets.

With JOB it shows one job: its ranks, the delay matrix (a row is a sender, a column a
receiver) and the incidents at its hosts and on its paths. --svg FILE draws the matrix.

Without --from and --last it uses the newest 10 s. Steps are visible if slots of flow records
are shorter than the part of a step in which no rank sends.

--nccl PATH reads what NCCL's Inspector, PyTorch's flight recorder or "ncclras -f json" wrote, a
file or a folder with one of each rank, and shows it beside the flow records of the same time: the ranks and
hosts of each group, its collectives and steps, and which rank enters them late. --ranks FILE
has a line "RANK HOST" for each rank of the job: dumps of the flight recorder have no hosts.

The exit code is 3 if something slows a job.`,
		Example: `  weft jobs
  weft jobs --nccl /var/log/nccl-inspector-4711
  weft jobs --last 30s -o json
  weft jobs h0+7 --svg matrix.svg
  weft jobs --scenario training.yaml`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, strings.Join(args, "")) },
	}
	f.register(cmd)
	f.timeRange.register(cmd)
	cmd.Flags().StringVar(&f.svg, "svg", "", "write the delay matrix of JOB to this file")
	cmd.Flags().StringVar(&f.metric, "metric", "took", "what the matrix shows: took (first byte to last), wait (start of the step to the first byte) or rate")
	cmd.Flags().StringVar(&f.nccl, "nccl", "", "file or folder of the NCCL Inspector, PyTorch's flight recorder, or ncclras (JSON)")
	cmd.Flags().StringVar(&f.ranks, "ranks", "", "file with a line RANK HOST for each rank, for --nccl")
	knownValues(cmd, "metric", "took", "wait", "rate")
	return cmd
}

func (f *jobsFlags) run(a *app, cmd *cobra.Command, name string) error {
	cell := matrixMetrics[f.metric]
	switch {
	case f.svg != "" && name == "":
		return usagef("--svg draws the matrix of one job: want JOB")
	case f.ranks != "" && f.nccl == "":
		return usagef("--ranks has the hosts of the ranks of --nccl: want both")
	case f.nccl != "" && name != "":
		return usagef("--nccl shows all groups of ranks: want no JOB")
	case f.nccl != "":
		return f.runNCCL(a, cmd)
	}
	t, err := f.open(cmd, "", live.StartOptions{Need: "flowset"})
	if err != nil {
		return err
	}
	defer t.close()
	r, err := f.parseRange(t)
	if err != nil {
		return err
	}
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	if name != "" {
		return f.showJob(a, cmd, t, name, r, cell)
	}
	list, err := t.Jobs(cmd.Context(), r)
	if err != nil {
		return t.explain(err)
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), list)
	} else {
		err = printJobs(cmd.OutOrStdout(), t, &list)
	}
	for i := range list.Items {
		if list.Items[i].Findings[0].Cause != "none" && err == nil {
			err = errFault
		}
	}
	return err
}

// parseRange is the range of the flags; empty: the default of the controller.
func (f *jobsFlags) parseRange(t *target) (r api.Range, err error) {
	if t.isScenario() || f.timeRange != (rangeFlags{}) {
		return f.timeRange.parse(t)
	}
	return r, nil
}

func printJobs(w io.Writer, t *target, l *api.JobList) error {
	fmt.Fprintf(w, "jobs from %s to %s\n", t.clock(l.From), t.clock(l.To))
	if !l.Complete {
		fmt.Fprintln(w, "the range has more flow records than one answer reads: the newest were used")
	}
	if len(l.Items) == 0 {
		fmt.Fprintln(w, "no jobs: none is configured, and no flows repeat in steps")
		return nil
	}
	var rows table
	rows.row("JOB", "FROM", "RANKS", "PATTERN", "STEPS", "STEP", "EXCHANGE", "SLOWED BY")
	for i := range l.Items {
		j := &l.Items[i]
		from := j.From
		if from == "nccl" {
			from = "NCCL"
		}
		rows.row(j.Name, from, len(j.Hosts), j.Pattern, j.Steps, stepTime(j.PeriodNs), stepTime(j.ExchangeNs), verdictOf(&j.Findings[0]))
	}
	if err := rows.print(w); err != nil {
		return err
	}
	for i := range l.Items {
		if j := &l.Items[i]; j.Findings[0].Cause != "none" {
			fmt.Fprintf(w, "\n%s:\n", j.Name)
			printFindings(w, j.Findings)
		}
	}
	return nil
}

func stepTime(ns int64) string {
	if ns == 0 {
		return "-"
	}
	return model.FormatDuration(time.Duration(ns))
}

// verdictOf names a finding in few words.
func verdictOf(f *api.JobFinding) string {
	switch f.Cause {
	case "compute":
		return "compute: " + f.Host
	case "absent":
		return "absent: " + f.Host
	case "host":
		return "network: host " + f.Host
	case "link":
		return fmt.Sprintf("network: link %s > %s", f.From, f.To)
	case "congestion":
		return "network: congestion"
	}
	return "nothing"
}

func printFindings(w io.Writer, list []api.JobFinding) {
	for i := range list {
		f := &list[i]
		cost := ""
		if f.CostNs > 1 {
			cost = fmt.Sprintf(" (%s of a step)", model.FormatDuration(time.Duration(f.CostNs)))
		}
		fmt.Fprintf(w, "  %s%s: %s\n", verdictOf(f), cost, f.Text)
	}
}

func (f *jobsFlags) showJob(a *app, cmd *cobra.Command, t *target, name string, r api.Range, cell matrixMetric) error {
	d, err := t.Job(cmd.Context(), name, r)
	if err != nil {
		return t.explain(err)
	}
	if f.svg != "" {
		if err := os.WriteFile(f.svg, []byte(drawMatrix(&d, f.metric, cell)), 0o644); err != nil {
			return err
		}
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), d)
	} else {
		err = printJob(cmd.OutOrStdout(), t, &d, f.metric, cell)
	}
	if err == nil && d.Findings[0].Cause != "none" {
		err = errFault
	}
	return err
}

func printJob(w io.Writer, t *target, d *api.JobDetail, metric string, cell matrixMetric) error {
	fmt.Fprintf(w, "%s: %s, %s from %s to %s\n", d.Name, d.Pattern, plural.Count(len(d.Hosts), "rank"), t.clock(d.From), t.clock(d.To))
	fmt.Fprintf(w, "%s of %s: exchange %s, compute %s (slots of %s)\n", plural.Count(d.Steps, "step"), stepTime(d.PeriodNs),
		stepTime(d.ExchangeNs), stepTime(d.ComputeNs), stepTime(d.ResolutionNs))
	printFindings(w, d.Findings)
	var ranks table
	ranks.row("RANK", "HOST", "COMPUTES", "LATE", "SENT PER STEP")
	for i := range d.Ranks {
		k := &d.Ranks[i]
		ranks.row(i, k.Host, stepTime(k.ThinkNs), stepTime(k.LateNs), model.FormatBytes(model.Bytes(k.Sent)))
	}
	fmt.Fprintln(w)
	if err := ranks.print(w); err != nil {
		return err
	}
	if err := printMatrix(w, d, metric, cell); err != nil {
		return err
	}
	for i := range d.Incidents {
		if i == 0 {
			fmt.Fprintln(w, "\nincidents at its hosts and on its paths:")
		}
		in := &d.Incidents[i]
		fmt.Fprintf(w, "  %s %s: %s\n", in.ID, in.State, in.Summary)
	}
	return nil
}
