// Package flowwatch turns the flowset reports of a fabric into what they mean,
// decodeSlot by slot: it waits until the switches have reported a slot, decodes their
// flowsets together, and shows the map of the slot to the analyses of ways,
// losses and load. It computes nothing itself; analyze does.
// Manual: docs/flow-analyses.md.
package flowwatch
