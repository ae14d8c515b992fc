// Package paths says which way every flow went in every slot, from the flow
// records of all switches, and what is wrong with the way: loops, black holes,
// and switches that forward a flow where it was not meant to go. How much was
// lost between two switches is analyze/loss's question.
// Origin: docs/papers.md#flowradar. Manual: docs/flow-analyses.md.
package paths
