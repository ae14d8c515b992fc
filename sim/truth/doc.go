// Package truth is what really happened in a simulated run: paths, counts,
// drops, pauses, depths, who waited for whom, whether a deadlock stood, and
// what was broken on purpose. It is for scoring alone; no analysis may read it,
// and internal/archtest holds that. It changes nothing of the run.
//
// A Recorder watches a sim.Network from its start. WaitFor reads the wait-for
// relation out of the network's state at one instant.
//
// Times are those of the run, not of any device's clock. Packets in the control
// queue (congestion notifications, polls, acknowledgements under AckControl)
// are counted where they are delivered or dropped, not hop by hop: nothing can
// hold them up. docs/simulator.md is the manual.
package truth
