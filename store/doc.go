// Package store is what every store of records shares: the kinds of records,
// their retention, the validity of queries, and the cursors of pages. Embedded,
// DuckDB in one file, is a store; conformance is the test suite of every store.
// Records are in model/record. docs/store.md describes the tables.
package store
