// Package diagnose says what a provenance graph means: which anomaly a flow
// suffers from, where it began, who began it, and how sure that is. It matches
// the graph's shape and never guesses: where the evidence does not reach, the
// verdict says so.
//
// Asking the switches and waiting for their answers is control/rootcause's
// work, the graph itself analyze/provenance's.
// Origin: docs/papers.md#hawkeye. For people: docs/diagnosis.md.
package diagnose
