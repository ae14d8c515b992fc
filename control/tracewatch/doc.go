// Package tracewatch is the controller's side of packet traces. It shares
// mirrors among analyzers, combines their counters once per period, judges what
// many traces say together, keeps the traces that are worth looking at, and
// answers questions about all of it. Its methods carry the names of the paper's
// interface: QueryTraces, QueryCounter, AddCounter, RemoveCounter, EnableDebug,
// DisableDebug. Probes are control/probe's.
//
// It computes little itself; analyze/trace does. Origin:
// docs/papers.md#everflow. Manual: docs/traces.md.
package tracewatch
