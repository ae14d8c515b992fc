package provenance

import (
	"cmp"
	"slices"
)

// countingSort sorts a list by numbers below n and keeps the order of equals.
// It takes two passes, where a comparison sort takes as many as the logarithm
// of the length.
func countingSort[T any](list []T, n int, number func(*T) int) {
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

// forEachRun calls f with each run of equal elements.
func forEachRun[T any](list []T, alike func(x, y *T) bool, f func(part []T)) {
	for len(list) > 0 {
		end := 1
		for end < len(list) && alike(&list[0], &list[end]) {
			end++
		}
		f(list[:end])
		list = list[end:]
	}
}

// sortByEpoch sorts records by epoch and keeps the order of equals.
func sortByEpoch(list []flowRecordRef) {
	slices.SortStableFunc(list, func(x, y flowRecordRef) int { return cmp.Compare(x.epoch, y.epoch) })
}
