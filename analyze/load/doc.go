// Package load measures how the fabric is used and how evenly: ports of one ECMP
// group that carry unequal loads and why, microbursts and their flows, senders
// that burst periodically, the largest flows and the distribution of flow sizes.
// It works on the maps of analyze/paths, slot by slot.
// Origin: docs/papers.md#flowradar. Manual: docs/flow-analyses.md.
package load
