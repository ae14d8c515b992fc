// Package scenario is a run as data: a fabric and its settings, traffic, faults,
// clocks, and what is expected to come of them. It reads scenarios from YAML or
// from the files of the HPCC simulator, assembles the network, plays it, and
// judges the outcome by what sim/truth saw. Writing results is report's work.
//
// docs/scenarios.md is the reference for people who write scenario files.
package scenario
