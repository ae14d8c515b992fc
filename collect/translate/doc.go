// Package translate turns reports into writes to a collector's memory. An
// Intake reads datagrams of every format, notices what is missing and drops
// what came twice; a Router spreads reports over collectors by key, within
// each one's rate; a Translator makes copies, gathers the postcards of a path
// and the entries of a list, and gives what is to be written to an Outlet:
// memory of this process, or RDMA to another.
//
// All three are state machines without clock, socket or lock. Where several
// receivers share a Translator, their host guards it. The memory itself is the
// work of the packages beside this one, sockets are ingest's.
// Origin: docs/papers.md#dta.
package translate
