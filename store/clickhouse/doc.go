// Package clickhouse is a store of records in ClickHouse, by its native protocol, for
// several processes: any number may write and read. It speaks the SQL of version 18.16
// and later. Sums, groups and pages are computed by the server. docs/store.md describes the tables.
package clickhouse
