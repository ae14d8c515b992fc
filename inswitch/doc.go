// Package inswitch is what a switch computes: telemetry programs as pure state
// machines, and the pipeline that orders them. A program is shown events
// (a packet at some stage of the switch, a pause frame, a timer) and answers
// with actions. It has no clock, goroutine, socket or log and allocates nothing
// per event; all that belongs to the data plane that runs it, its host.
//
// The same program runs in the simulator, where packets are values
// (dataplane/simhost), and in a switch that works on raw bytes; this package
// therefore shows header values and lends bytes only on request. Programs live
// in folders below this one: one folder, one program.
//
// docs/dataplane.md tells how to write a program and what each host does.
package inswitch
