// Package store is what every store of records shares: the kinds of records,
// how long each is kept, what a query may ask, and the mark at which a page ends.
// Embedded, DuckDB in one file, is a store; conformance is the suite that every
// store answers to. Records are model/record's. docs/store.md draws the tables.
package store
