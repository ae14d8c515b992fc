// Package provenance joins the switches' answers to one complaint into a graph
// rangeOfNode who waited for whom: paused ports for the ports whose queues paused them,
// flows for the ports that held them, ports for the flows that filled them.
// What such a graph means is analyze/diagnose's to say.
// Origin: docs/papers.md#hawkeye. Layout of the answers: docs/formats/epoch.md.
package provenance
