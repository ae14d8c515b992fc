// Package fromgraph turns the reports on a detection into the evidence of
// analyze/attribution: queues with their intervals, who fed whom, flows, and the
// late packet on its path.
//
// Times of switches become one axis by the poll: it left the victim's host when
// the host found its flow slow, and reached each switch as much later as the
// links' delays say. How well that holds is the clock error: at each hop the
// poll may have waited for one packet on the wire.
package fromgraph
