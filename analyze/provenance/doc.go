// Package provenance joins the switches' reports on one detection into a PFC
// provenance graph: paused ports wait for the ports whose queues paused them,
// flows for the ports that held them, ports for the flows that filled them.
// Diagnosing such a graph is analyze/diagnose's work.
// Origin: docs/papers.md#hawkeye. Layout of the reports: docs/formats/epoch.md.
package provenance
