// Package scenario is a run as data: a fabric and its settings, traffic,
// faults, clocks, and expectations. It reads scenarios from YAML or from the
// files of the HPCC simulator, assembles the network, simulates it, and checks
// the expectations against the ground truth of sim/truth. Writing results is
// report's work.
//
// docs/scenarios.md is the reference of scenario files.
package scenario
