// Package flowset encodes every flow a switch sees into a fixed table of cells
// and exports it once per slot: constant work per packet, no collision to
// resolve and no flow to evict. Plan computes the size of the table;
// analyze/flows decodes it; hash functions and cells are in sketch. Origin:
// docs/papers.md#flowradar. Guide: docs/flowset.md. Layout:
// docs/formats/flowset.md.
package flowset

//go:generate go run ./measure
