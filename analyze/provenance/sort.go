package provenance

import (
	"cmp"
	"slices"
)

// byNumber orders a list by numbers below n and keeps the order of equals. Two
// passes, where a sort that compares takes as many as the list's logarithm.
func byNumber[T any](list []T, n int, number func(*T) int) {
	first := make([]int32, n+1)
	for i := range list {
		first[number(&list[i])+1]++
	}
	for i := range n {
		first[i+1] += first[i]
	}
	old := slices.Clone(list)
	for i := range old {
		at := &first[number(&old[i])]
		list[*at] = old[i]
		*at++
	}
}

// runs calls f with each part of a list whose elements are alike.
func runs[T any](list []T, alike func(x, y *T) bool, f func(part []T)) {
	for len(list) > 0 {
		end := 1
		for end < len(list) && alike(&list[0], &list[end]) {
			end++
		}
		f(list[:end])
		list = list[end:]
	}
}

// byEpoch orders what was told by epoch and keeps the order of equals.
func byEpoch(list []told) {
	slices.SortStableFunc(list, func(x, y told) int { return cmp.Compare(x.epoch, y.epoch) })
}
