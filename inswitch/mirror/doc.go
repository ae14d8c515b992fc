// Package mirror chooses packets at a switch and sends the start of each, with
// what the switch knows about it, to an analyzer: packets that open or close a
// TCP connection, one in n of all others, those that their sender marked, the
// network's own protocols, and what rules ask for. Every switch chooses the
// same packets, so that the mirrors of one packet are its way.
//
// Putting them together is analyze/trace's work. Origin:
// docs/papers.md#everflow. Layout: docs/formats/mirror.md and erspan.md.
// Manual: docs/traces.md.
package mirror
