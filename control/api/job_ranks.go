package api

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/analyze/collectives"
	"github.com/weft-telemetry/weft/model"
)

// RankGroup is a communicator of a job, as NCCL's records show it.
type RankGroup struct {
	Name       string      `json:"name"`
	Size       int         `json:"size" doc:"Its ranks; 0: unknown"`
	Ranks      []GroupRank `json:"ranks" doc:"Those of which there are records"`
	Steps      int         `json:"steps" doc:"How often its collectives repeat; 0: they do not, or have no times"`
	PeriodNs   int64       `json:"period_ns"`
	TransferNs int64       `json:"transfer_ns" doc:"Of a step, while all ranks are in a collective"`
	WaitingNs  int64       `json:"waiting_ns" doc:"Of a step, for the rank that enters last, of the rank in the middle"`
	Reports    int         `json:"reports" doc:"Of the RAS service; 0: it is known by dumps of its ranks"`
}

// GroupRank is a rank of a communicator.
type GroupRank struct {
	Rank     int    `json:"rank"`
	Host     string `json:"host" doc:"Empty: unknown"`
	LateNs   int64  `json:"late_ns" doc:"How much later than the rank in the middle it enters the collectives of a step"`
	Newest   string `json:"newest,omitempty" doc:"The collective that it entered last"`
	Launched uint64 `json:"launched,omitempty" doc:"Collectives, by RAS"`
	State    string `json:"state" doc:"ok, absent, late, missing, dead, behind, or an error of NCCL's"`
}

// rankRecords is what NCCL's records show of all jobs.
type rankRecords struct {
	groups []collectives.Group
	states []collectives.State
}

func (s *Server) rankRecords() (r rankRecords) {
	if s.deps.Collectives != nil {
		r.groups, r.states = s.deps.Collectives()
	}
	return r
}

// maxRankGroups bounds the communicators that an answer has of a job.
const maxRankGroups = 64

// addTo adds the communicators whose hosts are all of a job, and what they find. A host that does
// not send is of the job by whom the job is known from.
func (r *rankRecords) addTo(j *Job, known []string) {
	hosts := slices.Concat(j.Hosts, known)
	var found []JobFinding
	for i := range r.groups {
		g := &r.groups[i]
		if len(j.Groups) < maxRankGroups && ofHosts(hosts, len(g.Ranks), func(k int) string { return g.Ranks[k].Host }) {
			j.Groups = append(j.Groups, newRankGroup(g))
			found = append(found, groupFindings(g)...)
		}
	}
	for i := range r.states {
		st := &r.states[i]
		if len(j.Groups) < maxRankGroups && ofHosts(hosts, len(st.Ranks), func(k int) string { return st.Ranks[k].Host }) {
			g, list := newStateGroup(st)
			j.Groups = append(j.Groups, g)
			found = append(found, list...)
		}
	}
	if len(found) == 0 {
		return
	}
	if j.Findings[0].Cause == "none" {
		j.Findings = nil
	}
	j.Findings = append(j.Findings, found...)
	// An absent rank stops the job: the rest matters less.
	slices.SortStableFunc(j.Findings, func(x, y JobFinding) int {
		rank := func(f *JobFinding) int {
			if f.Cause == "absent" {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(rank(&x), rank(&y)), cmp.Compare(y.CostNs, x.CostNs))
	})
}

// ofHosts reports whether all ranks whose host is known are on the hosts of a job.
func ofHosts(hosts []string, ranks int, host func(i int) string) bool {
	known := false
	for i := range ranks {
		h := host(i)
		if h == "" {
			continue
		}
		if known = true; !slices.Contains(hosts, h) {
			return false
		}
	}
	return known
}

func newRankGroup(g *collectives.Group) RankGroup {
	out := RankGroup{
		Name: g.Name, Size: max(g.Size, len(g.Ranks)), Ranks: []GroupRank{}, Steps: g.Steps, PeriodNs: int64(g.Period),
		TransferNs: int64(g.Transfer), WaitingNs: int64(g.Waiting),
	}
	late := g.LateRanks()
	for _, r := range g.Ranks {
		state := "ok"
		switch {
		case r.Absent:
			state = "absent"
		case slices.ContainsFunc(late, func(l collectives.Rank) bool { return l.Rank == r.Rank }):
			state = "late"
		}
		out.Ranks = append(out.Ranks, GroupRank{Rank: r.Rank, Host: r.Host, LateNs: int64(r.Late), Newest: fmt.Sprintf("%s %d", r.Newest.Op, r.Newest.Seq), State: state})
	}
	return out
}

// groupFindings are the ranks that others wait for.
func groupFindings(g *collectives.Group) (list []JobFinding) {
	for _, r := range g.AbsentRanks() {
		list = append(list, JobFinding{
			Cause: "absent", Host: r.Host,
			Text: fmt.Sprintf("%s has entered %s %d last; others wait in a later collective", rankName(r.Rank, r.Host), r.Newest.Op, r.Newest.Seq),
		})
	}
	for _, r := range g.LateRanks() {
		list = append(list, JobFinding{
			Cause: "compute", Host: r.Host, CostNs: int64(r.Late),
			Text: fmt.Sprintf("%s enters the collectives of a step %s later than the other ranks, by NCCL's records", rankName(r.Rank, r.Host), model.FormatDuration(r.Late)),
		})
	}
	return list
}

// newStateGroup is a communicator by reports of RAS, and the ranks that hold it up.
func newStateGroup(s *collectives.State) (RankGroup, []JobFinding) {
	out := RankGroup{Name: s.Name, Size: max(s.Size, len(s.Ranks)), Ranks: []GroupRank{}, Reports: s.Reports}
	var list []JobFinding
	for i := range s.Ranks {
		r := &s.Ranks[i]
		state, text := r.Verdict()
		out.Ranks = append(out.Ranks, GroupRank{Rank: r.Rank, Host: r.Host, Launched: r.Launched, State: state})
		if text != "" {
			list = append(list, JobFinding{Cause: "absent", Host: r.Host, Text: rankName(r.Rank, r.Host) + " " + text})
		}
	}
	return out, list
}

func rankName(rank int, host string) string {
	if host == "" {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d (%s)", rank, host)
}
