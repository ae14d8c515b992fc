// Package simhost runs the programs of inswitch in the simulator's switches.
// It is the only place where the two meet: it shows a simulated packet, whose
// headers are values, as the view that programs know, and carries out their
// actions on it. It holds no algorithm of its own.
//
// Reports leave a switch as DTA datagrams, over a modelled management network
// (Management) or as packets among the others (InBand). Each report that does
// not reach the sink is counted with a reason.
package simhost
