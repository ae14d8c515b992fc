package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/jobs"
	"github.com/weft-telemetry/weft/model/record"
)

// Job is hosts that exchange data in steps.
type Job struct {
	Name         string       `json:"name"`
	Inferred     bool         `json:"inferred" doc:"Found in flows; else of the configuration, or of NCCL's records"`
	From         string       `json:"from" enum:"configuration,nccl,flows" doc:"How it is known"`
	Hosts        []string     `json:"hosts" doc:"In ring order where the pattern is a ring"`
	Pattern      string       `json:"pattern" enum:"pair,ring,tree,all-to-all,mesh" doc:"Which ranks send to which"`
	Flows        int          `json:"flows"`
	Steps        int          `json:"steps" doc:"Whole steps in the range; 0: no steps are visible"`
	PeriodNs     int64        `json:"period_ns" doc:"Median time from step to step"`
	ExchangeNs   int64        `json:"exchange_ns" doc:"Median part of it in which ranks send"`
	ComputeNs    int64        `json:"compute_ns" doc:"The other part"`
	ResolutionNs int64        `json:"resolution_ns" doc:"Length of the slots that times are counted in"`
	Findings     []JobFinding `json:"findings" doc:"What slows it, the costliest first; the first is the verdict"`
	Groups       []RankGroup  `json:"groups" doc:"Communicators of it that NCCL's records show"`
}

// JobFinding is what slows a job.
type JobFinding struct {
	Cause   string `json:"cause" enum:"none,compute,host,link,congestion,absent" doc:"absent: a rank does not enter a collective in which others wait, does not answer, or has an error, by NCCL; compute: a rank is late; host: one takes packets too slowly; link: packets are lost on it; congestion: the exchange is slow without any of these"`
	Network bool   `json:"network" doc:"It is not the computation"`
	Host    string `json:"host,omitempty"`
	From    string `json:"from,omitempty" doc:"Sending end of a link"`
	To      string `json:"to,omitempty"`
	CostNs  int64  `json:"cost_ns" doc:"Time of a step that it takes, as far as it is known"`
	Text    string `json:"text" doc:"The evidence"`
}

// JobList are the jobs of a range.
type JobList struct {
	Items    []Job     `json:"items"`
	From     time.Time `json:"from" doc:"Start of the flow records that were used"`
	To       time.Time `json:"to"`
	Complete bool      `json:"complete" doc:"The whole range was used; else its newest records"`
	Omitted  int       `json:"omitted" doc:"Flows that were not compared: the smallest"`
}

// JobDetail is a job with its ranks and its delay matrix.
type JobDetail struct {
	Job
	From      time.Time   `json:"from"`
	To        time.Time   `json:"to"`
	Complete  bool        `json:"complete"`
	Ranks     []JobRank   `json:"ranks"`
	Cells     []JobCell   `json:"cells" doc:"The delay matrix: a row is a sender, a column a receiver"`
	Series    []JobStep   `json:"series" doc:"Oldest first"`
	FlowList  []JobFlow   `json:"flow_list"`
	Incidents []Incident  `json:"incidents" doc:"Incidents of the range at its hosts or on its paths, or that affect it"`
	Losses    []JobLoss   `json:"losses" doc:"Where its flows lose packets"`
	Pauses    []HostPause `json:"pauses" doc:"Hosts that pause their switches"`
}

// JobRank is a host of a job.
type JobRank struct {
	Host    string `json:"host"`
	ThinkNs int64  `json:"think_ns" doc:"Median time from the end of its exchange to its next send"`
	LateNs  int64  `json:"late_ns" doc:"How much longer that is than in the middle of the ranks"`
	Sent    uint64 `json:"sent_bytes" doc:"In a step"`
}

// JobCell is the flows from one rank to another.
type JobCell struct {
	Src     string   `json:"src"`
	Dst     string   `json:"dst"`
	Bytes   uint64   `json:"bytes" doc:"In a step"`
	WaitNs  int64    `json:"wait_ns" doc:"From the start of the step to its first byte"`
	TookNs  int64    `json:"took_ns" doc:"From its first byte to its last"`
	RateBps int64    `json:"rate_bps" doc:"While it sent"`
	Path    []string `json:"path" doc:"Switches of its largest flow"`
}

// JobStep is one step.
type JobStep struct {
	Start      time.Time `json:"start"`
	ExchangeNs int64     `json:"exchange_ns"`
}

// JobFlow is a flow of a job.
type JobFlow struct {
	FlowRef
	Bytes uint64   `json:"bytes" doc:"Over the range"`
	Path  []string `json:"path"`
}

// JobLoss is what flows of a job lost between two nodes.
type JobLoss struct {
	From    string `json:"from"`
	To      string `json:"to,omitempty"`
	Packets uint64 `json:"packets"`
}

// HostPause is how long a host paused the port that leads to it.
type HostPause struct {
	Host   string  `json:"host"`
	Switch string  `json:"switch"`
	Share  float64 `json:"share" doc:"Mean share of the time"`
}

// JobsQuery selects the range of jobs.
type JobsQuery struct {
	Range
}

type jobInput struct {
	Range
	Name string `path:"name" maxLength:"256"`
}

const (
	// maxJobRecords bounds the flow records of one answer: 10 s of 200 flows in slots of
	// 10 ms, which a store reads in about a second.
	maxJobRecords = 200_000
	// defaultJobRange is long enough for steps of two seconds.
	defaultJobRange = "10s"
)

func (s *Server) jobRoutes() {
	get(s, "/jobs", "list-jobs", "Jobs", "Jobs of the configuration and those that flows show, with what slows each",
		coalesced(s, "list-jobs", s.listJobs))
	get(s, "/jobs/{name}", "get-job", "Jobs", "One job: steps, ranks, delay matrix, flows, incidents",
		coalesced(s, "get-job", s.getJob))
}

// jobRange is the range of a question about jobs.
func (s *Server) jobRange(r Range) (record.Query, error) {
	if r.From.IsZero() && r.Last == "" {
		r.Last = defaultJobRange
	}
	return s.query(r, Paging{})
}

// jobActivity reads the flow records of a range from the newest. It begins no page after half
// of a request's time: a slow store's newest records are an answer, too, and more is read
// after them.
func (s *Server) jobActivity(ctx context.Context, q record.Query) (a *jobs.Activity, complete bool, err error) {
	var all []record.FlowSlot
	began := time.Now()
	q.Limit = maxChunk
	for {
		page, err := s.deps.Records.Flows(ctx, q)
		if err != nil {
			return nil, false, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return jobs.NewActivity(all), true, nil
		}
		if len(all) >= maxJobRecords || time.Since(began) > s.cfg.RequestTimeout/2 {
			return jobs.NewActivity(all), false, nil
		}
		q.After = page.Next
	}
}

// findJobs returns the jobs of the configuration, and those that flows show.
func (s *Server) findJobs(a *jobs.Activity) (list []*jobs.Job) {
	known := s.currentFabric().jobs
	for i := range known {
		j := a.Of(known[i].Name, known[i].Has)
		j.Learned, j.Known = known[i].Learned, known[i].Hosts
		list = append(list, j)
	}
	for _, j := range a.Infer() {
		if !slices.ContainsFunc(list, func(of *jobs.Job) bool { return !of.Inferred && of.Contains(j.Hosts) }) {
			list = append(list, j)
		}
	}
	return list
}

func (s *Server) listJobs(ctx context.Context, in *JobsQuery) (l JobList, err error) {
	q, err := s.jobRange(in.Range)
	if err != nil {
		return l, err
	}
	a, complete, err := s.jobActivity(ctx, q)
	if err != nil {
		return l, err
	}
	l = JobList{Items: []Job{}, From: a.From, To: q.To, Complete: complete, Omitted: a.Omitted}
	if a.Slots == 0 {
		l.From = q.From
	}
	e := &jobEvidence{s: s, q: q, hosts: map[string]hostLinks{}}
	ranks := s.rankRecords()
	for _, j := range s.findJobs(a) {
		found, err := e.of(ctx, j)
		if err != nil {
			return l, err
		}
		l.Items = append(l.Items, newJob(j, found))
		ranks.addTo(&l.Items[len(l.Items)-1], j.Known)
	}
	return l, nil
}

func (s *Server) getJob(ctx context.Context, in *jobInput) (d JobDetail, err error) {
	q, err := s.jobRange(in.Range)
	if err != nil {
		return d, err
	}
	a, complete, err := s.jobActivity(ctx, q)
	if err != nil {
		return d, err
	}
	list := s.findJobs(a)
	i := slices.IndexFunc(list, func(j *jobs.Job) bool { return j.Name == in.Name })
	if i < 0 {
		return d, fmt.Errorf("job %q is neither configured nor visible in flows from %s to %s: %w", in.Name, formatTime(q.From), formatTime(q.To), ErrNotFound)
	}
	j := list[i]
	e := &jobEvidence{s: s, q: q, hosts: map[string]hostLinks{}}
	found, err := e.of(ctx, j)
	if err != nil {
		return d, err
	}
	d = newJobDetail(j, found)
	ranks := s.rankRecords()
	ranks.addTo(&d.Job, j.Known)
	d.From, d.To, d.Complete = q.From, q.To, complete
	if a.Slots > 0 {
		d.From = a.From
	}
	d.Incidents, err = e.incidents(ctx, j)
	return d, err
}

func newJob(j *jobs.Job, e *jobs.Evidence) Job {
	out := Job{
		Name: j.Name, Inferred: j.Inferred, From: "configuration", Hosts: append([]string{}, j.Hosts...), Pattern: string(j.Pattern), Flows: len(j.Flows),
		Steps: len(j.Steps), PeriodNs: int64(j.Period), ExchangeNs: int64(j.Exchange), ComputeNs: int64(j.Compute()),
		ResolutionNs: int64(j.Resolution), Findings: []JobFinding{}, Groups: []RankGroup{},
	}
	if len(out.Hosts) == 0 { // none of them sends
		out.Hosts = append(out.Hosts, j.Known...)
	}
	switch {
	case j.Inferred:
		out.From = "flows"
	case j.Learned:
		out.From = "nccl"
	}
	for _, f := range j.Assess(e) {
		out.Findings = append(out.Findings, JobFinding{
			Cause: string(f.Cause), Network: f.Cause.Network(), Host: f.Host, From: f.From, To: f.To, CostNs: int64(f.Cost), Text: f.Text,
		})
	}
	return out
}

func newJobDetail(j *jobs.Job, e *jobs.Evidence) JobDetail {
	d := JobDetail{
		Job: newJob(j, e), Ranks: []JobRank{}, Cells: []JobCell{}, Series: []JobStep{}, FlowList: []JobFlow{}, Losses: []JobLoss{}, Pauses: []HostPause{},
	}
	for _, r := range j.Ranks {
		d.Ranks = append(d.Ranks, JobRank{Host: r.Host, ThinkNs: int64(r.Think), LateNs: int64(r.Late), Sent: r.Sent})
	}
	for _, c := range j.Cells {
		d.Cells = append(d.Cells, JobCell{
			Src: c.Src, Dst: c.Dst, Bytes: c.Bytes, WaitNs: int64(c.Wait), TookNs: int64(c.Took), RateBps: int64(c.Rate), Path: append([]string{}, c.Path...),
		})
	}
	for _, p := range j.Steps {
		d.Series = append(d.Series, JobStep{p.Start, int64(p.Exchange)})
	}
	for _, f := range j.Flows {
		d.FlowList = append(d.FlowList, JobFlow{FlowRef{Flow: f.Key, Src: f.Src, Dst: f.Dst}, f.Bytes, append([]string{}, f.Path...)})
	}
	for _, l := range e.Losses {
		d.Losses = append(d.Losses, JobLoss{l.From, l.To, l.Packets})
	}
	for _, p := range e.Pauses {
		d.Pauses = append(d.Pauses, HostPause(p))
	}
	return d
}
