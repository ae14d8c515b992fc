// Package loss counts how many packets of every flow were lost, between which
// switches and when, by comparing the counters of successive switches over
// flowlets: bursts separated by a silent slot. Its input is the paths that
// analyze/paths reconstructs.
// Origin: docs/papers.md#flowradar. Manual: docs/flow-analyses.md.
package loss
