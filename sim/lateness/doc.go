// Package lateness is the exact account of a late packet in a simulated run:
// where it waited, and what each picosecond of the wait was due to. It is for
// scoring only; no analysis may read it, and internal/archtest enforces that.
// It does not affect the run, and nothing of it comes from an analysis.
//
// An Oracle observes a sim.Network and logs every packet that joins and leaves
// a queue, every transmission and every pause, for a window of simulated time.
// Account then splits the lateness of a packet into terms that add up to it.
//
// The wait in a queue is from joining it to the beginning of the transmission.
// The part that the packet would have waited without the pauses of the busy
// period is contention, owed to the packets ahead of it. The rest is owed to
// the latest paused time of the busy period. Paused time is owed to the host
// that sent the PAUSE; or, where a switch did, to what the switch held of this
// link when the frame left, by the same rule at that earlier instant. Time only
// decreases, so this ends: at contention, at a host, or before the log. Where it
// returns to a queue within one and the same pause, that is a deadlock cycle.
//
// What the simulator does not know:
//   - A flow's packet is made when the wire of its NIC is free. The NIC's queue
//     holds only acknowledgements, polls and the like; the time that a paused or
//     busy NIC keeps a flow from sending is not in the lateness of any packet.
//   - A packet that was dropped (a lossy class, a fault, a program) has no
//     arrival, so no lateness: ErrLost.
//   - A mux makes a new packet of one that it forwards: accounts start and end
//     there.
//   - A sender's packets are found at the host port that sent its newest one:
//     what it sent by another, before it migrated, is unknown.
//   - Thresholds of a shared buffer fall when other ports fill it. The pause is
//     still owed to the bytes that the paused link has in the buffer.
//
// docs/simulator.md is the manual.
package lateness
