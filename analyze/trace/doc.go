// Package trace assembles the mirrors of one packet, hop by hop, and classifies
// its fate: it arrived, looped, or was last seen where it should not end. A
// Judge gathers many traces before it reports a fault, because a mirror may be
// lost as well as a packet; Counters aggregate the traces that are not stored.
//
// Mirroring is inswitch/mirror's work. Origin: docs/papers.md#everflow. Manual:
// docs/traces.md.
package trace
