package member

import (
	"cmp"
	"slices"
)

// Assign gives every partition to one of the members. Shares differ by one at most. As
// far as that allows, a partition stays with its holder: those of members that are gone
// are given to others, and to one that is new only as many as it lacks. The result
// depends on nothing but the arguments, so that all members agree.
func Assign(partitions int, members []string, holders map[int]string) map[int]string {
	members = slices.Clone(members)
	slices.Sort(members)
	members = slices.Compact(members)
	if len(members) == 0 {
		return nil
	}
	kept := map[string][]int{}
	for _, m := range members {
		kept[m] = nil
	}
	for p := range partitions {
		if list, alive := kept[holders[p]]; alive {
			kept[holders[p]] = append(list, p)
		}
	}
	// Those that hold most have the shares that are larger by one.
	slices.SortStableFunc(members, func(a, b string) int { return cmp.Compare(len(kept[b]), len(kept[a])) })
	assigned := make(map[int]string, partitions)
	share := make([]int, len(members))
	for i, m := range members {
		share[i] = partitions / len(members)
		if i < partitions%len(members) {
			share[i]++
		}
		for _, p := range kept[m][:min(share[i], len(kept[m]))] {
			assigned[p] = m
			share[i]--
		}
	}
	next := 0
	for p := range partitions {
		if _, done := assigned[p]; done {
			continue
		}
		for share[next] == 0 {
			next++
		}
		assigned[p] = members[next]
		share[next]--
	}
	return assigned
}
