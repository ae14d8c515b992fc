// Package ingest holds the rooms that bring reports in: udp receives datagrams
// in batches. Every datagram lost or refused is counted with its reason.
package ingest
