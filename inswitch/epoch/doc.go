// Package epoch keeps, in every switch, what is needed to say later why a
// lossless flow was slow: per epoch, what every flow and every port did and how
// much of it was paused, and how much traffic went between every pair of ports.
// A polling packet that a suffering host sends makes the switch freeze that
// state, report it, and pass the packet on to where the pauses come from.
//
// When a host polls is inhost's business, what the reports mean
// analyze/provenance's.
// Origin: docs/papers.md#hawkeye. Layouts: docs/formats/epoch.md and poll.md.
package epoch
