// Package embedded stores records in one DuckDB file: batches are atomic and
// survive a crash once Append returns, queries are limited in size and time, old
// records are removed by age and by size. One process has a file open at a time.
// Package store defines queries; docs/store.md describes the tables.
package embedded
