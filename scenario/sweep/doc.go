// Package sweep runs a scenario with many seeds and sums up its figures, with
// confidence intervals. Results are kept in a CSV file, a row for each run, so that an
// interrupted sweep goes on where it stopped. What a run does is package scenario's.
// Manual: docs/scenarios.md#sweeps.
package sweep
