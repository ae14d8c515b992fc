// Package record holds what Weft keeps and shows: rows of a store, answers of
// the API. Nodes are named as the operator's topology names them, because a
// record outlives the numbering of the fabric it came from. It computes
// nothing; analyses make records, a store keeps them, the API shows them.
package record
