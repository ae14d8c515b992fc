// Package scc finds strongly connected components: nodes of a directed graph
// that lead to each other. It finds cyclic buffer dependencies in routes, in the
// simulator's state and in reported telemetry.
package scc

import (
	"iter"
	"slices"
)

// Components returns the components of what roots lead to, in a graph of the
// nodes 0 to n-1; next appends the nodes that one leads to, in any order. Each
// component is ascending, and comes before those that lead to it.
//
// It is Tarjan's algorithm without recursion: a fabric has thousands of queues.
func Components[N ~int | ~int32](n int, roots iter.Seq[N], next func(node N, list []N) []N) (out [][]N) {
	order, low := make([]int, n), make([]int, n) // order 0: not visited
	placed := make([]bool, n)                    // in a component
	type frame struct {
		node          N
		from, at, end int // of ahead: start, position and end of its next nodes
	}
	var calls []frame
	var stack, ahead []N
	met := 0
	enter := func(node N) {
		met++
		order[node], low[node] = met, met
		stack = append(stack, node)
		from := len(ahead)
		ahead = next(node, ahead)
		calls = append(calls, frame{node, from, from, len(ahead)})
	}
	for root := range roots {
		if order[root] != 0 {
			continue
		}
		for enter(root); len(calls) > 0; {
			f := &calls[len(calls)-1]
			if f.at < f.end {
				to := ahead[f.at]
				f.at++
				if order[to] == 0 {
					enter(to)
				} else if !placed[to] {
					low[f.node] = min(low[f.node], order[to])
				}
				continue
			}
			node := f.node
			calls, ahead = calls[:len(calls)-1], ahead[:f.from]
			if len(calls) > 0 {
				up := calls[len(calls)-1].node
				low[up] = min(low[up], low[node])
			}
			if low[node] == order[node] {
				cut := slices.Index(stack, node)
				part := slices.Clone(stack[cut:])
				stack = stack[:cut]
				for _, p := range part {
					placed[p] = true
				}
				slices.Sort(part)
				out = append(out, part)
			}
		}
	}
	return out
}
