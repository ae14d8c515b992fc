// Package sflow encodes and decodes sFlow version 5 as far as Weft uses it: flow
// samples, counter samples and drop notifications, with the records of packet
// headers, egress queues and interface counters. It keeps no state between
// datagrams: sequence numbers, wraps and what an ifIndex means are
// the source's work.
// Layout: docs/formats/sflow.md.
package sflow
