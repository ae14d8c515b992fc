// Package proof tests a verdict about a late packet by experiment. From the records of
// an incident alone it rebuilds what happened as a scenario: what flows sent, which
// hosts paused their switch, when the late packet was sent. It is fitted until the
// packet is as late as recorded, and then run again without what the verdict
// names, and without something else as a control. A true cause is one whose removal
// makes the packet arrive in time.
//
// It knows nothing of the fabric but records, the topology and the operator's settings:
// what a simulator knows of its own run is not among them.
package proof
