// Package epoch keeps, in every switch, the telemetry for diagnosing a slow
// lossless flow: per epoch, the packets of every flow and every port and how
// many of them were paused, and the traffic between every pair of ports. A
// polling packet from a host makes the switch freeze that state, report it, and
// forward the packet towards the source of the pauses.
//
// inhost/agent decides when a host polls; analyze/provenance interprets the
// reports.
// Origin: docs/papers.md#hawkeye. Layouts: docs/formats/epoch.md and poll.md.
package epoch
