// Package paths reconstructs the path of every flow in every slot, from the flow
// records of all switches, and finds faults of forwarding: loops, black holes,
// and misrouted flows. The number of packets lost between two switches is
// analyze/loss's result.
// Origin: docs/papers.md#flowradar. Manual: docs/flow-analyses.md.
package paths
