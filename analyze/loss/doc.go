// Package loss says how many packets of every flow were lost, between which
// switches and when, by comparing the counters of successive switches over
// flowlets: bursts that a silent slot separates. Which way flows went is
// analyze/paths's answer, and the input.
// Origin: docs/papers.md#flowradar. Manual: docs/flow-analyses.md.
package loss
