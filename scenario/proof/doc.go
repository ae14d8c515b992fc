// Package proof tests a verdict by experiment. From the records of an incident alone it
// rebuilds what happened as a scenario, and runs it again without what the verdict
// names, and without something else as a control. A true cause is one whose removal mends
// it.
//
// Of a late packet the records are what flows sent, which hosts paused their switch, and
// when the packet was sent (Prove). Of packets that do not arrive, or not by the intended
// route, they are what each switch counted of each flow (ProveDelivery); so they are of
// queues that wait for each other, and of uneven load.
//
// It knows nothing of the fabric but records, the topology and the operator's settings:
// what a simulator knows of its own run is not among them.
package proof
