// Package sketch implements the flowset, which counts many flows in little
// memory: its hash family, Bloom filter and cells, and the peeling that decodes
// flows from cells. The switch that encodes and the collector that decodes share
// this code, so they cannot disagree. Packets, slots and formats are in
// inswitch/flowset, wire/flowset and analyze/flows.
// Origin: docs/papers.md#flowradar. Choices and costs: docs/flowset.md.
package sketch
