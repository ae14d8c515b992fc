// Package paper diagnoses slow flows as the Hawkeye paper does, with nothing
// else: Table 2's signatures and Algorithm 2, on the telemetry of its section 3.3,
// which is counters of ports, flows and port pairs by epoch. weft repro hawkeye
// shows it beside analyze/diagnose, which reads states, pauses and intervals, too.
// Origin: docs/papers.md#hawkeye.
package paper
