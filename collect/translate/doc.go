// Package translate turns reports into writes to a collector's memory. An
// Intake parses datagrams of every format, asks a Gate who may report, verifies
// MACs, detects gaps and drops duplicates; a Router spreads reports over
// collectors by key, within each one's rate limit; a Translator makes copies,
// gathers the postcards of a path and the entries of a list, and writes them with
// a MemoryWriter: to memory of this process, or to another's by RDMA.
//
// All three are state machines without clock or socket. Where several receivers
// share a Translator, their host locks it; the table of Reporters that their
// Intakes share has locks of its own. The memory is in the sibling packages,
// sockets are in ingest.
// Origin: docs/papers.md#dta.
package translate
