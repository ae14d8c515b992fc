// Package collect holds the rooms that turn reports into memory that answers:
// region is the memory, place says where the copies of a key lie, and keywrite,
// postcard, list and count are the structures in it, with their writers and
// readers. Sockets are ingest's business.
package collect
