package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/analyze/collectives"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// ncclRange is how much flow records are read of the time of the dumps: the newest.
const ncclRange = 10 * time.Second

// ncclReport is what NCCL's records say, beside the jobs of flow records.
type ncclReport struct {
	Files    int         `json:"files"`
	Records  int         `json:"records"`
	Skipped  int         `json:"skipped"`
	Repeated int         `json:"repeated"`
	Complete bool        `json:"complete"`
	Groups   []ncclGroup `json:"groups"`
	States   []ncclState `json:"states"` // of RAS
	Jobs     []api.Job   `json:"jobs"`
	NoFlows  string      `json:"no_flows,omitempty"` // why there are no jobs of flow records
}

type ncclGroup struct {
	Name       string     `json:"name"`
	Size       int        `json:"size"`
	Ranks      []ncclRank `json:"ranks"`
	Kinds      []ncclKind `json:"collectives"`
	Steps      int        `json:"steps"`
	PeriodNs   int64      `json:"period_ns"`
	TransferNs int64      `json:"transfer_ns"`
	WaitingNs  int64      `json:"waiting_ns"`
	Matched    int        `json:"matched"`
	Findings   []string   `json:"findings"`
	Job        string     `json:"job,omitempty"` // of flow records, with the same hosts
}

type ncclRank struct {
	Rank   int    `json:"rank"`
	Host   string `json:"host,omitempty"`
	LateNs int64  `json:"late_ns"`
	Newest string `json:"newest"`
	Absent bool   `json:"absent"`
}

type ncclKind struct {
	Op         string `json:"op"`
	Bytes      uint64 `json:"bytes"`
	Count      int    `json:"count"`
	TransferNs int64  `json:"transfer_ns"`
	WaitingNs  int64  `json:"waiting_ns"`
}

func (f *jobsFlags) runNCCL(a *app, cmd *cobra.Command) error {
	dump, files, err := f.readNCCL()
	if err != nil {
		return fmt.Errorf("--nccl: %w", err)
	}
	r := ncclReport{
		Files: files, Records: len(dump.Records), Skipped: dump.Skipped, Repeated: dump.Repeated,
		Complete: !dump.Cut && !dump.Full, Groups: []ncclGroup{}, States: []ncclState{}, Jobs: []api.Job{},
	}
	if err := f.addFlowJobs(cmd, &r, dump); err != nil {
		return err
	}
	slowed := false
	groups := collectives.Analyze(dump.Records)
	for i := range groups {
		g := newNCCLGroup(&groups[i], r.Jobs)
		slowed = slowed || len(g.Findings) > 0
		if at := slices.IndexFunc(r.Jobs, func(j api.Job) bool { return j.Name == g.Job }); at >= 0 && r.Jobs[at].Findings[0].Cause != "none" {
			slowed = true
		}
		r.Groups = append(r.Groups, g)
	}
	for _, s := range collectives.States(dump.Members) {
		state := newNCCLState(&s)
		slowed = slowed || len(state.Findings) > 0
		r.States = append(r.States, state)
	}
	if a.format == "json" {
		err = printJSON(cmd.OutOrStdout(), r)
	} else {
		err = r.print(cmd.OutOrStdout())
	}
	if err == nil && slowed {
		err = errFault
	}
	return err
}

func (f *jobsFlags) readNCCL() (*nccl.Dump, int, error) {
	var hosts map[int]string
	if f.ranks != "" {
		file, err := os.Open(f.ranks)
		if err != nil {
			return nil, 0, err
		}
		defer file.Close()
		if hosts, err = nccl.ReadHosts(file); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", f.ranks, err)
		}
	}
	return nccl.ReadPath(f.nccl, hosts)
}

// addFlowJobs adds the jobs that flow records of the dumps' time show. Without a controller
// the dumps are shown alone, and so are reports of RAS, which have no times of collectives.
func (f *jobsFlags) addFlowJobs(cmd *cobra.Command, r *ncclReport, dump *nccl.Dump) error {
	if len(dump.Records) == 0 {
		return nil
	}
	t, err := f.open(cmd, "", live.StartOptions{Need: "flowset"})
	if err != nil {
		return err
	}
	defer t.close()
	at, err := f.parseRange(t)
	if err != nil {
		return err
	}
	if at == (api.Range{}) {
		at = rangeOf(dump)
	}
	if err := t.finish(cmd.Context()); err != nil {
		return err
	}
	if l, err := t.Jobs(cmd.Context(), at); err != nil {
		r.NoFlows = t.explain(err).Error()
	} else {
		r.Jobs = l.Items
	}
	return nil
}

// rangeOf is the newest part of the time of a dump.
func rangeOf(dump *nccl.Dump) (r api.Range) {
	for i := range dump.Records {
		at := dump.Records[i].Time
		if r.From.IsZero() || at.Before(r.From) {
			r.From = at
		}
		if end := at.Add(max(dump.Records[i].Duration, 1)); end.After(r.To) {
			r.To = end
		}
	}
	if from := r.To.Add(-ncclRange); from.After(r.From) {
		r.From = from
	}
	return r
}

func newNCCLGroup(g *collectives.Group, jobs []api.Job) ncclGroup {
	out := ncclGroup{
		Name: g.Name, Size: max(g.Size, len(g.Ranks)), Ranks: []ncclRank{}, Kinds: []ncclKind{}, Steps: g.Steps, PeriodNs: int64(g.Period),
		TransferNs: int64(g.Transfer), WaitingNs: int64(g.Waiting), Matched: g.Matched, Findings: []string{}, Job: jobOfRanks(g.Ranks, jobs),
	}
	for _, r := range g.Ranks {
		out.Ranks = append(out.Ranks, ncclRank{r.Rank, r.Host, int64(r.Late), fmt.Sprintf("%s %d", r.Newest.Op, r.Newest.Seq), r.Absent})
	}
	for _, k := range g.Kinds {
		out.Kinds = append(out.Kinds, ncclKind{k.Op, k.Bytes, k.Count, int64(k.Transfer), int64(k.Waiting)})
	}
	for _, r := range g.AbsentRanks() {
		out.Findings = append(out.Findings, fmt.Sprintf("absent: %s has entered %s %d last; others wait in a later collective", rankName(r), r.Newest.Op, r.Newest.Seq))
	}
	for _, r := range g.LateRanks() {
		out.Findings = append(out.Findings, fmt.Sprintf("compute: %s enters the collectives of a step %s later than the other ranks, of %s from step to step",
			rankName(r), model.FormatDuration(r.Late), model.FormatDuration(g.Period)))
	}
	return out
}

func rankName(r collectives.Rank) string {
	if r.Host == "" {
		return fmt.Sprintf("rank %d", r.Rank)
	}
	return fmt.Sprintf("rank %d (%s)", r.Rank, r.Host)
}

// jobOfRanks returns the smallest job that has the hosts of all ranks; empty: none. Hosts of
// dumps may have a domain.
func jobOfRanks(ranks []collectives.Rank, jobs []api.Job) (name string) {
	least := 0
	for i := range jobs {
		j := &jobs[i]
		all := len(ranks) > 0
		for _, r := range ranks {
			short, _, _ := strings.Cut(r.Host, ".")
			all = all && r.Host != "" && (slices.Contains(j.Hosts, r.Host) || slices.Contains(j.Hosts, short))
		}
		if all && (name == "" || len(j.Hosts) < least) {
			name, least = j.Name, len(j.Hosts)
		}
	}
	return name
}

func (r *ncclReport) print(w io.Writer) error {
	fmt.Fprintf(w, "NCCL: %s, %s of %s, %s of RAS\n", plural.Count(r.Files, "file"), plural.Count(r.Records, "collective"), plural.Count(len(r.Groups), "group"),
		plural.Count(len(r.States), "communicator"))
	if !r.Complete {
		fmt.Fprintf(w, "not all was read: a file ends within an entry, or there are more than %d\n", nccl.MaxRecords)
	}
	if r.Skipped+r.Repeated > 0 {
		fmt.Fprintf(w, "not compared: %d sends, receives and proxies, %d parts of coalesced collectives\n", r.Skipped, r.Repeated)
	}
	if r.NoFlows != "" {
		fmt.Fprintf(w, "without flow records: %s\n", r.NoFlows)
	}
	for i := range r.Groups {
		if err := r.printGroup(w, &r.Groups[i]); err != nil {
			return err
		}
	}
	for i := range r.States {
		if err := r.States[i].print(w); err != nil {
			return err
		}
	}
	return nil
}

func (r *ncclReport) printGroup(w io.Writer, g *ncclGroup) error {
	fmt.Fprintf(w, "\n%s: %d of %s\n", g.Name, len(g.Ranks), plural.Count(g.Size, "rank"))
	switch {
	case g.Steps > 0:
		fmt.Fprintf(w, "%s of %s: transfer %s, waiting %s\n", plural.Count(g.Steps, "step"), stepTime(g.PeriodNs), stepTime(g.TransferNs), stepTime(g.WaitingNs))
	case g.Matched == 0:
		fmt.Fprintln(w, "no times to compare: want the files of two ranks, of the flight recorder with TORCH_NCCL_ENABLE_TIMING=1")
	default:
		fmt.Fprintln(w, "no steps: its collectives do not repeat")
	}
	for _, text := range g.Findings {
		fmt.Fprintf(w, "  %s\n", text)
	}
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Name == g.Job {
			fmt.Fprintf(w, "flow records, job %s, %s of %s, exchange %s:\n", j.Name, plural.Count(j.Steps, "step"), stepTime(j.PeriodNs), stepTime(j.ExchangeNs))
			printFindings(w, j.Findings)
		}
	}
	if g.Job == "" && r.NoFlows == "" {
		fmt.Fprintln(w, "flow records of that time show no job with these hosts")
	}
	var kinds, ranks table
	kinds.row("COLLECTIVE", "BYTES", "COUNT", "TRANSFER", "WAITING")
	for _, k := range g.Kinds {
		size := "-"
		if k.Bytes > 0 {
			size = model.FormatBytes(model.Bytes(k.Bytes))
		}
		kinds.row(k.Op, size, k.Count, stepTime(k.TransferNs), stepTime(k.WaitingNs))
	}
	if len(g.Kinds) > 0 {
		fmt.Fprintln(w)
		if err := kinds.print(w); err != nil {
			return err
		}
	}
	ranks.row("RANK", "HOST", "LATE", "NEWEST")
	for _, k := range g.Ranks {
		host := k.Host
		if host == "" {
			host = "-"
		}
		ranks.row(k.Rank, host, stepTime(k.LateNs), k.Newest)
	}
	fmt.Fprintln(w)
	return ranks.print(w)
}
