// Package ipfix decodes IPFIX (RFC 7011) and NetFlow version 9 (RFC 3954) as far as
// Weft uses them: records of flows, with key, counters and times, and options with
// the sampling rate and names of interfaces. Templates are kept for each observation
// domain, in bounded number and size. Sequence numbers and what an ifIndex means
// are the source's work.
// Layout: docs/formats/ipfix.md.
package ipfix
