// Package diagnose finds the cause of a slow flow in a provenance graph: which
// anomaly affects it, which port and which flows or host triggered it, and with
// what confidence. It infers only what the evidence supports: where reports are
// missing, the verdict says so.
//
// Polling the switches and waiting for their reports is control/rootcause's
// work, the graph itself analyze/provenance's, the table of anomalies
// analyze/anomaly's.
// Origin: docs/papers.md#hawkeye. Manual: docs/diagnosis.md.
package diagnose
