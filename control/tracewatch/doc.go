// Package tracewatch is the controller's side of packet traces. It shares
// mirrors among analyzers, combines their counters once per period, evaluates
// findings over many traces, keeps abnormal and marked traces, and answers queries.
// Its methods are those of the paper's interface: QueryTraces (GetTrace),
// QueryCounter (GetCounter), AddCounter, RemoveCounter, EnableDebug (EnableDbg),
// DisableDebug (DisableDbg). Probes are control/probe's.
//
// It computes little itself; analyze/trace does. Origin:
// docs/papers.md#everflow. Manual: docs/traces.md.
package tracewatch
