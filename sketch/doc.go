// Package sketch holds what counts many flows in little memory: the hash
// family of a flowset, its filter bits, its cells and the peeling that takes
// flows out again. There is one copy of each for the switch that encodes and
// the collector that decodes, so that they cannot disagree. Packets, slots and
// formats are for others (inswitch/flowset, wire/flowset, analyze/flows).
// Origin: docs/papers.md#flowradar. Choices and costs: docs/flowset.md.
package sketch
