// Package control is the controller: it hands the reports of all switches to
// the watches that understand them, joins what they find into incidents, asks
// the fabric for the evidence that is missing, and gives what is worth keeping
// to a store. The watches are packages beside this one, the algorithms
// analyze's. Manual: docs/incidents.md.
package control
