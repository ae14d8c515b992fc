// Package conformance is what every store has to pass: the same batches and
// queries go to the store and to a Twin, slow and obvious, and the answers must
// be the same. Tests of a store call Run.
package conformance
