// Package simhost runs the programs of inswitch in the simulator's switches. It
// alone connects the two: it presents a simulated packet, whose headers are
// values, as the view that programs use, and executes their actions on it. It
// holds no algorithm.
//
// Reports leave a switch as DTA datagrams, over a modelled management network
// (Management) or in-band (InBand). Each report that does not reach the sink is
// counted with a reason.
package simhost
