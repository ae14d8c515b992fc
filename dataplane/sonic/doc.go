// Package sonic makes simulated switches speak as SONiC switches do. Each has an sFlow agent,
// which sends samples of packets, counters of interfaces and drop notifications; a gNMI target
// with the tables of COUNTERS_DB, CONFIG_DB and APPL_DB, LLDP neighbours among them; and an
// exporter of high-frequency telemetry by OTLP. What the switch counts is sim/exporter's.
//
// It is written from the specifications and shares no code with wire/sflow and ingest, so
// that each tests the other. Manual: docs/commodity.md.
package sonic
