package collectives

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/wire/nccl"
)

// RecentConfig bounds a Recent.
type RecentConfig struct {
	Records int           // collectives on one rank each; the oldest are forgotten
	Members int           // ranks of all reports of RAS
	Groups  int           // communicators that RAS reports
	Keep    time.Duration // how long a record or report is of use after it arrived
}

// DefaultRecentConfig keeps 48 collectives of each rank of a job of 1024, and four reports of
// RAS for 16,384 ranks in all.
func DefaultRecentConfig() RecentConfig {
	return RecentConfig{Records: 50_000, Members: 1 << 16, Groups: 256, Keep: 10 * time.Minute}
}

// RecentMemory bounds what DefaultRecentConfig keeps: 500 bytes for each, names included.
const RecentMemory = 64 << 20

// maxReports bounds the reports of a communicator that are compared.
const maxReports = 4

// Recent is the newest records of NCCL of a running job, as they arrive. One goroutine uses it.
type Recent struct {
	cfg     RecentConfig
	records map[recordKey]*arrived
	order   []recordKey // by first arrival; keys that were replaced since are there once
	reports map[nccl.Group]*reported
	refused uint64
}

// recordKey is one collective on one rank: dumps of the flight recorder repeat it.
type recordKey struct {
	group, ranks, op string
	rank             int
	seq              uint64
}

type arrived struct {
	nccl.Record
	at time.Time
}

// reported is the newest reports of a communicator, oldest first.
type reported struct {
	list [][]nccl.Member
	at   time.Time
}

// NewRecent returns a Recent without records.
func NewRecent(cfg RecentConfig) *Recent {
	return &Recent{cfg: cfg, records: map[recordKey]*arrived{}, reports: map[nccl.Group]*reported{}}
}

// Add takes what arrived at a time. Forget has to follow at times.
func (r *Recent) Add(now time.Time, d *nccl.Dump) {
	for i := range d.Records {
		one := &d.Records[i]
		k := recordKey{one.Group.ID, one.Group.Ranks, one.Op, one.Rank, one.Seq}
		if was := r.records[k]; was != nil {
			was.Record, was.at = *one, now
			continue
		}
		if len(r.order) >= r.cfg.Records {
			delete(r.records, r.order[0])
			r.order = r.order[1:]
		}
		r.records[k] = &arrived{*one, now}
		r.order = append(r.order, k)
	}
	of := map[nccl.Group][]nccl.Member{}
	for _, m := range d.Members {
		of[m.Group] = append(of[m.Group], m)
	}
	for g, members := range of {
		r.addReport(now, g, members)
	}
}

func (r *Recent) addReport(now time.Time, g nccl.Group, members []nccl.Member) {
	known := r.reports[g]
	if known == nil {
		if len(r.reports) >= r.cfg.Groups {
			r.refused += uint64(len(members))
			return
		}
		known = &reported{}
		r.reports[g] = known
	}
	known.at = now
	// Any process of a job answers for all of it: two may have been asked in one second.
	known.list = slices.DeleteFunc(known.list, func(l []nccl.Member) bool { return l[0].Time.Equal(members[0].Time) })
	known.list = append(known.list, members)
	slices.SortStableFunc(known.list, func(x, y []nccl.Member) int { return x[0].Time.Compare(y[0].Time) })
	known.list = known.list[max(len(known.list)-maxReports, 0):]
	for sum := r.members(); sum > r.cfg.Members; { // older reports first
		sum -= len(known.list[0])
		if known.list = known.list[1:]; len(known.list) == 0 {
			r.refused += uint64(len(members))
			delete(r.reports, g)
			return
		}
	}
}

// members is how many ranks all reports have.
func (r *Recent) members() (n int) {
	for _, known := range r.reports {
		for _, one := range known.list {
			n += len(one)
		}
	}
	return n
}

// Forget drops what arrived too long ago, and reports whether there was some.
func (r *Recent) Forget(now time.Time) (some bool) {
	before := len(r.order) + len(r.reports)
	old := func(at time.Time) bool { return now.Sub(at) > r.cfg.Keep }
	r.order = slices.DeleteFunc(r.order, func(k recordKey) bool {
		if !old(r.records[k].at) {
			return false
		}
		delete(r.records, k)
		return true
	})
	for g, known := range r.reports {
		if old(known.at) {
			delete(r.reports, g)
		}
	}
	return len(r.order)+len(r.reports) < before
}

// Refused is how many ranks of reports were beyond the bounds.
func (r *Recent) Refused() uint64 { return r.refused }

// Report analyses what is known.
func (r *Recent) Report() (groups []Group, states []State) {
	list := make([]nccl.Record, 0, len(r.order))
	for _, k := range r.order {
		list = append(list, r.records[k].Record)
	}
	var members []nccl.Member
	for _, known := range r.reports {
		for _, one := range known.list {
			members = append(members, one...)
		}
	}
	return Analyze(list), States(members)
}

// HostSet is the hosts of a job that its communicators show.
type HostSet struct {
	Name  string // of the largest communicator
	Hosts []string
}

// HostSets returns the hosts of communicators with at least two, those with most hosts first.
// A communicator whose hosts another has, is of the same job.
func HostSets(groups []Group, states []State) (list []HostSet) {
	var all []HostSet
	for i := range groups {
		var hosts []string
		for _, r := range groups[i].Ranks {
			hosts = append(hosts, r.Host)
		}
		all = append(all, newHostSet(groups[i].Name, hosts))
	}
	for i := range states {
		var hosts []string
		for _, r := range states[i].Ranks {
			hosts = append(hosts, r.Host)
		}
		name, _, _ := strings.Cut(states[i].Name, "/")
		all = append(all, newHostSet(name, hosts))
	}
	slices.SortFunc(all, func(x, y HostSet) int {
		return cmp.Or(cmp.Compare(len(y.Hosts), len(x.Hosts)), slices.Compare(x.Hosts, y.Hosts), cmp.Compare(x.Name, y.Name))
	})
	for _, s := range all {
		within := func(o HostSet) bool {
			return !slices.ContainsFunc(s.Hosts, func(h string) bool { return !slices.Contains(o.Hosts, h) })
		}
		if len(s.Hosts) > 1 && !slices.ContainsFunc(list, within) {
			list = append(list, s)
		}
	}
	return list
}

// newHostSet sorts hosts, each once, without the unknown.
func newHostSet(name string, hosts []string) HostSet {
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	return HostSet{name, slices.DeleteFunc(hosts, func(h string) bool { return h == "" })}
}
