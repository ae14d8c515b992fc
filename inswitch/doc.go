// Package inswitch defines the telemetry programs of a switch as pure state
// machines, and the pipeline that runs them in order. A program receives events
// (a packet at a stage of the switch, a pause frame, a timer) and answers with
// actions. It has no clock, goroutine, socket or log and allocates nothing per
// event; those belong to the data plane that runs it, its host.
//
// The same program runs in the simulator, where packets are values
// (dataplane/simhost), and in a switch that works on raw bytes; this package
// therefore shows header values and provides bytes only on request. Each program
// has its own folder below this one.
//
// docs/dataplane.md describes how to write a program and what each host does.
package inswitch
