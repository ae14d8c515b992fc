// Package rootcause answers hosts that detect a slow flow: it collects the
// reports of the polled switches, waits for those that are late, has the graph
// diagnosed, takes a second snapshot before it calls a deadlock persistent, and
// recognizes recurring bursts. The inference is analyze/diagnose's work; hosts
// send the polls. Manual: docs/diagnosis.md.
package rootcause
