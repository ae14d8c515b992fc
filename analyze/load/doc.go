// Package load says who uses the fabric and how evenly: ports of one ECMP
// group that carry unequal loads and why, bursts and what they are made of,
// senders that burst to a rhythm, the largest flows and how large flows are.
// It works on the maps of analyze/paths, slot by slot.
// Origin: docs/papers.md#flowradar. Manual: docs/flow-analyses.md.
package load
