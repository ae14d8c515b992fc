// Package flowwatch analyses the flowset reports of a fabric slot by slot: it waits
// until the switches have reported a slot, decodes their flowsets together, and
// hands the map of the slot to the analyses of paths, losses and load. It computes nothing itself; analyze does.
// Manual: docs/flow-analyses.md.
package flowwatch
