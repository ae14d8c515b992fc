// Package ingest holds the rooms that bring reports in: udp receives datagrams
// in batches, rocev2 writes and opens memory over RDMA, collector is the
// service around both; erspan reads mirrors that other makers' switches send,
// from capture files (pcap) and the network. Every datagram lost or refused is counted with its
// reason.
package ingest
