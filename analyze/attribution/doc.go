// Package attribution accounts for the time by which a packet was late: how
// many nanoseconds it waited for which cause, at which port. One rule decides,
// on intervals of time: in which a queue was paused, and in which it was
// congested.
//
// A packet's lateness is the sum of its waits in the queues of its path. A wait
// in a queue has two parts. Contention is the wait that the packet would have
// had with the same arrivals and no pause since the queue was last empty. The
// rest is due to the pauses since then, the latest first, each up to its own
// length. A pause that a host sent is that host's injection. A pause that a
// switch sent is due to the queues of that switch that held the packets of the
// paused queue, earlier by the link's delay; for each of them the rule applies
// again. A path of this recursion that returns to a queue, while the pauses of
// all queues on it overlap, is a deadlock cycle. What no report explains is
// unexplained, so the terms of an Account always sum to the lateness.
//
// Telemetry is coarser than that definition. The approximations are:
//
//   - Where a queue's backlog was recorded over time, it is known up to the error of
//     the record, and so is what it held of another queue's packets (curve.go).
//     What follows is for queues, and times, without such a record.
//   - A queue's backlog is known when a pause began, at the threshold when a
//     congestion interval began and ended, at the interval's peak and at
//     snapshots. The peak is as late as the interval's end allows: from there
//     on the queue drained at its link's rate. Between known instants packets
//     arrived evenly (backlog.go).
//   - Before a congestion interval the queue filled as fast as after its start;
//     after it, it drains. Else it is empty: other waits below the congestion
//     threshold are unexplained.
//   - The wait in a congested queue is known within bounds. Its place between
//     them is the one at which the waits sum to the measured lateness
//     (residence.go).
//   - What a queue held of another's packets is a snapshot's count where its span
//     covers the instant; else the rate at which they came, times the age of the
//     queue's oldest packet (Little's law; pausegraph.go).
//   - A pause is accounted in slices, between the instants at which a queue
//     downstream changed; each slice as at its middle.
//   - A summary of several pauses is one interval with a coverage: its share of
//     paused time, evenly spread.
//   - A packet may be later than a snapshot, if that answers several polls. What
//     held at the snapshot is taken to go on for as long as it had lasted, with the
//     backlog it had; what the packet waited for after that is unexplained.
//   - A queue whose switch sent no report takes the part of the lateness that
//     the others leave.
//
// Times of different switches compare as Before does: yes, no, or maybe within
// their clock errors. What holds only as a maybe counts in a term's Time and not
// in its Min. All scales follow from the rates, delays, sizes and thresholds of
// the input: there is no duration among the constants.
//
// Filling an Evidence from reports is fromgraph's work: this package knows
// neither formats nor collectors. Manual: docs/diagnosis.md.
package attribution
