// Package collect holds the packages that write reports into queryable memory:
// region is the memory, slothash finds the slots of a key's copies, and keywrite,
// postcard, list and count are the structures in it, with their writers and
// readers. Sockets are in ingest.
package collect
