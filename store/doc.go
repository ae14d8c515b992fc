// Package store is what every store of records shares: the kinds of records,
// how long each is kept, what a query may ask, and the mark at which a page ends.
// The stores themselves are embedded (DuckDB in one file) and, past one
// machine, clickhouse; both answer to the suite in conformance. Records are
// model/record's. docs/store.md draws the tables.
package store
