// Package record holds the records that Weft stores and returns from its API.
// Nodes have the names of the operator's topology, because a record outlives the
// numbering of the fabric it came from. The package computes nothing: analyses
// make records, a store keeps them, the API returns them.
package record
