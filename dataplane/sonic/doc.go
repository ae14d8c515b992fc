// Package sonic makes simulated switches speak as SONiC switches do: an sFlow
// agent per switch sends samples of packets, counters of interfaces and drop
// notifications. What the switch counts is sim/exporter's.
//
// The encoder is written from sFlow's specification and shares no code with
// wire/sflow, so that each tests the other. Manual: docs/commodity.md.
package sonic
