// Package inhost is what a host computes for telemetry, as state machines like
// those of inswitch: one folder, one of them. A host of the data plane tells
// them what its NIC sees and carries out what they ask for.
package inhost
