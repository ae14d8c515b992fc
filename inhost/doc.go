// Package inhost defines the telemetry functions of a host as state machines,
// like those of inswitch, each in its own folder. The host's data plane passes
// them what its NIC sees and carries out their requests.
package inhost
