// Package mirror selects packets at a switch and sends the start of each, with
// its ports and time, to an analyzer: packets that open or close a TCP
// connection, one in n of all others, those that their sender marked, control
// protocols, and packets that rules match. Every switch selects the same
// packets, so that the mirrors of one packet show its path.
//
// analyze/trace reassembles them. Origin: docs/papers.md#everflow. Layout:
// docs/formats/mirror.md and erspan.md. Manual: docs/traces.md.
package mirror
