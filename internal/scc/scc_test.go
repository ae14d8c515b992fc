package scc

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestComponentsEqualReference compares with an exhaustive search.
func TestComponentsEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		next, reach := make([][]int, n), make([][]bool, n)
		for i := range n {
			next[i] = rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 3).Draw(t, "next")
			reach[i] = make([]bool, n)
			reach[i][i] = true
			for _, to := range next[i] {
				reach[i][to] = true
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		roots := rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 3).Draw(t, "roots")
		got := Components(n, slices.Values(roots), func(node int, list []int) []int { return append(list, next[node]...) })
		seen := make([]bool, n)
		for at, part := range got {
			var want []int
			for i := range n {
				if reach[part[0]][i] && reach[i][part[0]] {
					want = append(want, i)
				}
			}
			if !slices.Equal(part, want) {
				t.Fatalf("component %v of %v; want %v", part, next, want)
			}
			for _, earlier := range got[:at] {
				if reach[earlier[0]][part[0]] {
					t.Fatalf("%v leads to %v of %v and comes first", earlier, part, next)
				}
			}
			for _, p := range part {
				seen[p] = true
			}
		}
		for i := range n {
			if want := slices.ContainsFunc(roots, func(r int) bool { return reach[r][i] }); seen[i] != want {
				t.Fatalf("node %d of %v from %v: found %v; want %v", i, next, roots, seen[i], want)
			}
		}
	})
}

func TestComponentsOfALongPath(t *testing.T) {
	const n = 1 << 20
	got := Components(n, slices.Values([]int32{0}), func(node int32, list []int32) []int32 { return append(list, (node+1)%n) })
	if len(got) != 1 || len(got[0]) != n {
		t.Errorf("%d components; want one of all %d nodes", len(got), n)
	}
}
