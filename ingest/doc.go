// Package ingest holds the packages that receive reports: udp receives datagrams
// in batches, rocev2 writes and serves memory over RDMA, collector is the service
// that uses both; admission decides who may report, keyfile holds the keys of
// reporters; erspan and intreport decode the mirrors and INT reports of other
// vendors' switches, and capture records and replays reports (pcap). Every lost
// or refused datagram is counted with its reason.
package ingest
