// Package conformance is the test suite of every store: the same batches and
// queries go to the store and to the Reference implementation, and the answers
// must be the same. Tests of a store call Run.
package conformance
