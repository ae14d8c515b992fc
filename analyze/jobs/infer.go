package jobs

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/weft-telemetry/weft/internal/scc"
)

// Infer returns the jobs that flows show, the largest first. Flows that only acknowledge, that
// send all the time, or that do not repeat are of none.
func (a *Activity) Infer() []*Job {
	var regular []*flow
	for _, f := range a.flows {
		if len(findRhythms([]*flow{f}, 1)) > 0 {
			regular = append(regular, f)
		}
	}
	var list []*Job
	taken := map[*flow]bool{}
	isTaken := func(f *flow) bool { return taken[f] }
	for _, group := range inStep(regular) { // that of the largest flow first
		if group = slices.DeleteFunc(group, isTaken); len(group) == 0 {
			continue
		}
		for _, f := range group {
			taken[f] = true
		}
		group = append(group, followers(group, slices.DeleteFunc(slices.Clone(a.flows), isTaken))...)
		for _, flows := range members(group) {
			for _, f := range flows {
				taken[f] = true
			}
			j := a.newJob(flows)
			j.Name, j.Inferred = inferredName(j.Hosts), true
			list = append(list, j)
		}
	}
	list = a.addStanding(list)
	slices.SortFunc(list, func(x, y *Job) int {
		return cmp.Or(cmp.Compare(len(y.Hosts), len(x.Hosts)), compareNames(x.Hosts[0], y.Hosts[0]), cmp.Compare(x.Name, y.Name))
	})
	seen := map[string]int{}
	for _, j := range list {
		if seen[j.Name]++; seen[j.Name] > 1 {
			j.Name += fmt.Sprintf("-%d", seen[j.Name])
		}
	}
	return list
}

// inferredName names a job by its first host and how many there are more.
func inferredName(hosts []string) string { return fmt.Sprintf("%s+%d", hosts[0], len(hosts)-1) }

// inStep groups flows that share a host and a rhythm.
func inStep(flows []*flow) [][]*flow {
	return joinBy(flows, func(f, g *flow) bool { return len(findRhythms([]*flow{f, g}, 1)) > 0 })
}

// joinBy groups flows that share a host and are of one job, as two of them show.
func joinBy(flows []*flow, together func(f, g *flow) bool) (groups [][]*flow) {
	parent := make([]int, len(flows))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	at := map[string][]int{}
	for i, f := range flows {
		for _, h := range []string{f.src, f.dst} {
			for _, k := range at[h] {
				if x, y := root(i), root(k); x != y && together(f, flows[k]) {
					parent[max(x, y)] = min(x, y)
				}
			}
			at[h] = append(at[h], i)
		}
	}
	by := map[int]int{} // root to group
	for i, f := range flows {
		g, known := by[root(i)]
		if !known {
			g = len(groups)
			by[root(i)], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], f)
	}
	return groups
}

// members divides flows into sets of hosts each of which reaches every other: every rank of a
// job sends and receives. Flows between two sets are of none.
func members(flows []*flow) (sets [][]*flow) {
	index := map[string]int{}
	var ahead [][]int
	at := func(h string) int {
		i, known := index[h]
		if !known {
			i = len(ahead)
			index[h], ahead = i, append(ahead, nil)
		}
		return i
	}
	for _, f := range flows {
		src, dst := at(f.src), at(f.dst)
		ahead[src] = append(ahead[src], dst)
	}
	set := make([]int, len(ahead))
	next := func(h int, list []int) []int { return append(list, ahead[h]...) }
	components := scc.Components(len(ahead), natural(len(ahead)), next)
	for i, hosts := range components {
		for _, h := range hosts {
			set[h] = i
		}
	}
	sets = make([][]*flow, len(components))
	for _, f := range flows {
		if s := set[index[f.src]]; s == set[index[f.dst]] {
			sets[s] = append(sets[s], f)
		}
	}
	return slices.DeleteFunc(sets, func(list []*flow) bool { return len(list) == 0 })
}

// natural yields 0 to n-1.
func natural(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
