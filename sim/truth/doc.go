// Package truth records the ground truth of a simulated run: paths, counts,
// drops, pauses, queue depths, wait-for graphs, deadlocks and injected causes.
// It is for scoring only; no analysis may read it, and internal/archtest
// enforces that. It does not affect the run.
//
// A Recorder observes a sim.Network from its start. WaitFor reads the wait-for
// graph from the network's state at one instant.
//
// Times are simulated time, not of any device's clock. Packets in the control
// queue (congestion notifications, polls, acknowledgements under AckControl)
// are counted where they are delivered or dropped, not hop by hop: PFC never
// pauses them. docs/simulator.md is the manual.
package truth
