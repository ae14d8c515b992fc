package jobs

import (
	"slices"
)

const (
	// startSlots is how far apart flows of one step begin, at most, in slots: those that are
	// cut into slots at another place, and ranks that wait for a packet of the step before.
	startSlots = 2
	// minBurst is the least bytes of a burst: what is less may be calls of any service.
	minBurst = 100_000
	// minAlike is how many bursts two flows must have in common. Two that began together with
	// the same bytes once may do so by chance.
	minAlike = 2
	// standingRanks is the least ranks of a job without a rhythm. Two hosts that answer each
	// other are none.
	standingRanks = 3
)

// burst is what a flow sent without a pause.
type burst struct {
	first int // slot
	bytes uint64
}

// bursts cuts a flow where it was silent.
func (f *flow) bursts() (list []burst) {
	last := 0
	for i, p := range f.points {
		if i == 0 || p.slot-last > 1 {
			list = append(list, burst{first: p.slot})
		}
		list[len(list)-1].bytes += p.bytes
		last = p.slot
	}
	return slices.DeleteFunc(list, func(b burst) bool { return b.bytes < minBurst })
}

// standing returns groups of flows of jobs that had steps and stand: a host that takes packets
// slowly makes steps last, so that the range has no rhythm, and packets are sent again, so that
// their bytes differ. What is left of the rhythm is the steps that
// were whole. In each, every flow of a ring or of an all-to-all begins at the same time and
// carries the same bytes.
func standing(flows []*flow) (groups [][]*flow) {
	var left []*flow
	of := map[*flow][]burst{}
	for _, f := range flows {
		if list := f.bursts(); len(list) >= minAlike {
			of[f] = list
			left = append(left, f)
		}
	}
	for _, group := range joinBy(left, func(f, g *flow) bool { return alike(of[f], of[g]) >= minAlike }) {
		if group = closedSet(group, left, of); group != nil {
			groups = append(groups, group)
		}
	}
	return groups
}

// alike is how many bursts of two flows begin together and carry the same bytes, which are also
// those of the first of them.
func alike(x, y []burst) (n int) {
	// The bytes of a step are not known: those that most bursts in common have.
	var common []uint64
	for i, k := 0, 0; i < len(x) && k < len(y); {
		switch d := x[i].first - y[k].first; {
		case d > startSlots:
			k++
		case d < -startSlots:
			i++
		default:
			if same(x[i].bytes, y[k].bytes) {
				common = append(common, (x[i].bytes+y[k].bytes)/2)
			}
			i++
			k++
		}
	}
	for _, b := range common {
		most := 0
		for _, o := range common {
			if same(b, o) {
				most++
			}
		}
		n = max(n, most)
	}
	return n
}

// same reports whether numbers of bytes are those of one step.
func same(a, b uint64) bool {
	return float64(max(a, b)-min(a, b)) <= sameBytes*float64(max(a, b))
}

// closedSet adds the flows that were in one of a group's steps, and lie between its hosts; nil:
// its hosts do not all send and receive, so it is no job.
func closedSet(group, all []*flow, of map[*flow][]burst) []*flow {
	hosts := map[string]bool{}
	for _, f := range group {
		hosts[f.src], hosts[f.dst] = true, true
	}
	var set []*flow
	for _, f := range all {
		once := func(g *flow) bool { return f == g || alike(of[f], of[g]) > 0 }
		if hosts[f.src] && hosts[f.dst] && slices.ContainsFunc(group, once) {
			set = append(set, f)
		}
	}
	best := []*flow(nil)
	for _, m := range members(set) {
		if len(m) > len(best) {
			best = m
		}
	}
	ends := map[string]bool{}
	for _, f := range best {
		ends[f.src] = true
	}
	if len(ends) < standingRanks {
		return nil
	}
	return best
}

// isPart reports whether a job may be a part of one that stands: it has no steps, or is of two
// hosts only, whose flows look regular by chance.
func (j *Job) isPart() bool { return j.rhythm == nil && !j.Stands || len(j.Hosts) == 2 }

// addStanding adds jobs that stand, of flows that no job with steps has. One that has a part of
// their hosts, is a part of them.
func (a *Activity) addStanding(list []*Job) []*Job {
	taken := map[*flow]bool{}
	for _, j := range list {
		for _, f := range j.flows {
			taken[f] = !j.isPart()
		}
	}
	for _, group := range standing(slices.DeleteFunc(slices.Clone(a.flows), func(f *flow) bool { return taken[f] })) {
		j := a.newJob(group)
		j.Name, j.Inferred, j.Stands = inferredName(j.Hosts), true, j.rhythm == nil
		list = slices.DeleteFunc(list, func(o *Job) bool { return o.isPart() && j.Contains(o.Hosts) })
		list = append(list, j)
	}
	return list
}
