package jobs

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Pattern is which ranks of a job send to which.
type Pattern string

// Patterns.
const (
	Pair     Pattern = "pair" // of two hosts
	Ring     Pattern = "ring"
	Tree     Pattern = "tree" // in both directions on every edge, as a reduction and a broadcast
	AllToAll Pattern = "all-to-all"
	Mesh     Pattern = "mesh" // none of the others: several groups of ranks, mostly
)

// Job is hosts that exchange data in steps.
type Job struct {
	Name     string
	Inferred bool     // from flows alone, not of a configuration
	Learned  bool     // from NCCL's records, not of a configuration
	Known    []string // hosts that it has by whom it is known from, also those that do not send
	Hosts    []string // in ring order where it is a ring
	// Stands says that it had steps, and that the range has no rhythm, because one lasts.
	Stands  bool
	Pattern Pattern
	Flows   []Flow
	Steps   []Step
	// Period is the time from step to step, Exchange the part of it in which ranks send,
	// each the median.
	Period, Exchange time.Duration
	Ranks            []Rank // in the order of Hosts
	Cells            []Cell // by sender, then receiver
	Resolution       time.Duration

	flows  []*flow
	rhythm *rhythm
	// unfinished is the step that it stands in; nil: none.
	unfinished *unfinished
	members    map[string]int
}

// Flow is a flow of a job.
type Flow struct {
	Key      model.FlowKey
	Src, Dst string
	Bytes    uint64 // over the range
	Packets  uint64
	Path     []string // switches
}

// Step is one step of a job.
type Step struct {
	Start    time.Time
	Exchange time.Duration
}

// Rank is a host of a job.
type Rank struct {
	Host string
	// Think is the median time from the end of its exchange to its next send: it computes,
	// or waits for something that is not in the network.
	Think time.Duration
	// Late is how much longer that is than of the ranks in the middle.
	Late time.Duration
	Sent uint64 // bytes in a step
}

// Cell is the flows from one rank to another: a cell of the delay matrix.
type Cell struct {
	Src, Dst string
	Bytes    uint64        // in a step
	Wait     time.Duration // from the start of the step to its first byte
	Took     time.Duration // from its first byte to its last
	Rate     model.Rate    // while it sent
	Path     []string      // switches of its largest flow
}

// Compute is the part of a step in which no rank sends.
func (j *Job) Compute() time.Duration { return j.Period - j.Exchange }

// Of returns the job of hosts that are known, with all flows that have both ends among
// them. Steps are missing where they show none.
func (a *Activity) Of(name string, has func(host string, addr model.Addr) bool) *Job {
	var flows []*flow
	for _, f := range a.flows {
		if has(f.src, f.key.Src) && has(f.dst, f.key.Dst) {
			flows = append(flows, f)
		}
	}
	var regular []*flow
	for _, f := range flows {
		if len(findRhythms([]*flow{f}, 1)) > 0 {
			regular = append(regular, f)
		}
	}
	if len(regular) > 0 { // what else the hosts send, is not the job's
		flows = regular
	}
	j := a.newJob(flows)
	j.Name = name
	return j
}

// newJob makes a job of flows, without steps if they have no rhythm together.
func (a *Activity) newJob(flows []*flow) *Job {
	j := &Job{Resolution: a.Slot}
	j.addFlows(flows)
	rhythms := findRhythms(flows, flowShare)
	if len(rhythms) == 0 {
		rhythms = findRhythms(flows, jobShare)
	}
	// A step in two parts may begin with either. Few waited for, rather than many that
	// are slow.
	for i := range rhythms {
		c := *j
		c.rhythm = &rhythms[i]
		c.measure(a)
		if late := c.lateRanks(); j.rhythm == nil || late > 0 && (j.lateRanks() == 0 || late < j.lateRanks()) {
			*j = c
		}
	}
	if j.rhythm != nil {
		j.unfinished = j.findUnfinished(a)
	}
	return j
}

// addFlows sets hosts, pattern and flows.
func (j *Job) addFlows(flows []*flow) {
	j.flows = flows
	edges := map[[2]string]uint64{}
	for _, f := range flows {
		edges[[2]string{f.src, f.dst}] += f.bytes
		j.Flows = append(j.Flows, Flow{Key: f.key, Src: f.src, Dst: f.dst, Bytes: f.bytes, Packets: f.packets, Path: f.path})
		j.Hosts = append(j.Hosts, f.src, f.dst)
	}
	slices.SortFunc(j.Hosts, compareNames)
	j.Hosts = slices.Compact(j.Hosts)
	j.Pattern = patternOf(j.Hosts, edges)
	if j.Pattern == Ring {
		j.Hosts = ringOrder(j.Hosts, edges)
	}
	j.members = map[string]int{}
	for i, h := range j.Hosts {
		j.members[h] = i
	}
	slices.SortFunc(j.Flows, func(x, y Flow) int {
		return cmp.Or(cmp.Compare(j.members[x.Src], j.members[y.Src]), cmp.Compare(j.members[x.Dst], j.members[y.Dst]), x.Key.Compare(y.Key))
	})
}

// lateRanks is how many ranks are late.
func (j *Job) lateRanks() (n int) {
	for i := range j.Ranks {
		if j.isLate(&j.Ranks[i]) {
			n++
		}
	}
	return n
}

// compareNames orders h2 before h10.
func compareNames(x, y string) int {
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
}

// Contains reports whether all the hosts are of the job.
func (j *Job) Contains(hosts []string) bool {
	for _, h := range hosts {
		if _, member := j.members[h]; !member {
			return false
		}
	}
	return true
}
