// Package embedded keeps records in one DuckDB file: batches go in whole and
// survive a crash once Append returns, queries are bounded in answer and time,
// old records leave by age and by size. One process holds a file at a time.
// What a query means is package store's; docs/store.md draws the tables.
package embedded
