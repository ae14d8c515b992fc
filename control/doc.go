// Package control is the controller: it hands reports to the watch of their kind,
// correlates findings into incidents, requests missing evidence from the fabric,
// and makes records for a store. The watches are packages beside this one, the
// algorithms are analyze's; control/core runs it. Manual: docs/incidents.md.
package control
