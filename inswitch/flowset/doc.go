// Package flowset encodes every flow a switch sees into a fixed table of cells
// and exports it once per slot: constant work per packet, no collision to
// resolve and no flow to evict. How large the table must be is Plan's to say;
// decoding is analyze/flows's work, hash functions and cells are sketch's.
// Origin: docs/papers.md#flowradar. Guide: docs/flowset.md. Layout:
// docs/formats/flowset.md.
package flowset

//go:generate go run ./measure
