// Package audit compares sources that count the same packets. On every link, what a switch
// counted out of its port by flows (flowset), what the port's counter says it sent, what the
// peer's counter says it received, and what the peer counted by flows are one number, less
// what was lost in between. Packets are lost between two of these points and never appear
// there: a source that shows more than one before it, or that alone differs from all others,
// is wrong, and is named. Where a real loss explains the difference as well, nothing is named.
//
// An Auditor is a state machine: slots of flowsets and totals of counters come in, findings
// go out. What rests on a named source is for others to doubt. Guide: docs/sources.md.
package audit
